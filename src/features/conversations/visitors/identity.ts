// Who a visitor is at the site that embeds the widget: an id that the site signed with the
// assistant's secret. An id without the signature is refused. Called by routes.ts and
// identity-routes.ts.
import { createHmac, timingSafeEqual } from "node:crypto";
import { assistantNotFound, type Assistant } from "#features/assistants/assistants.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import type { Instant, System } from "#core/system.ts";

/** The previous secret stays valid this long, until all of a site's programs use the new one. */
const OVERLAP_MS = 86_400_000;

export interface IdentityState {
  /** Number of the current secret; 0: none yet. */
  number: number;
  changedAt: Instant | null;
}

export interface IdentityStore {
  /** Null: there is no such assistant. */
  state(assistantId: number): Promise<IdentityState | null>;
  /** Advances to the next secret; null: the account has no such assistant. */
  rotate(args: {
    accountId: number; assistantId: number; now: Instant;
  }): Promise<IdentityState | null>;
}

/** The visitor as the page sends it. */
interface SignedVisitor {
  id: string;
  hash?: string | undefined;
  name?: string | undefined;
  email?: string | undefined;
}

/** The name shown at the desk, which is not signed: a page may name its visitor freely. */
interface Visitor {
  id: string;
  variables: Record<string, string>;
}

type Signed = Pick<Assistant, "id" | "uuid">;

function isSignature(secret: string, id: string, hash: string): boolean {
  const given = Buffer.from(hash, "hex");
  const right = createHmac("sha256", secret).update(id).digest();
  return given.length === right.length && timingSafeEqual(given, right);
}

export function createIdentity({ store, secret, system }: {
  store: IdentityStore; secret: string; system: System;
}) {
  // Derived, so that the database holds nothing by which an id could be signed.
  const secretOf = (uuid: string, number: number): string =>
    createHmac("sha256", secret).update(`identity:${uuid}:${number}`).digest("hex");
  const isOverlapping = ({ number, changedAt }: IdentityState): boolean =>
    number > 1 && system.now() < (changedAt ?? 0) + OVERLAP_MS * 1000;
  return {
    state: store.state,
    rotate: async (
      accountId: number, { id, uuid }: Signed,
    ): Promise<IdentityState & { secret: string }> => {
      const state = await store.rotate({ accountId, assistantId: id, now: system.now() });
      if (!state) throw assistantNotFound();
      return { ...state, secret: secretOf(uuid, state.number) };
    },
    /** Throws Fault 422 without a signature, 403 for a wrong one or without a secret. */
    verify: async ({ id, uuid }: Signed, visitor: SignedVisitor): Promise<Visitor> => {
      const { hash = "" } = visitor;
      if (hash === "") {
        throw fieldFault("visitor.hash", "The visitor's hash is required: your site signs the id with the assistant's identity secret.");
      }
      const state = await store.state(id);
      if (!state || state.number === 0) {
        throw new Fault(403, "This assistant has no identity secret yet: create one to sign visitors.");
      }
      const numbers = [state.number, ...isOverlapping(state) ? [state.number - 1] : []];
      if (!numbers.some((number) => isSignature(secretOf(uuid, number), visitor.id, hash))) {
        throw new Fault(403, "The hash does not match the visitor's id.");
      }
      const { name, email } = visitor;
      return {
        id: visitor.id,
        variables: {
          ...name ? { customer_name: name } : {}, ...email ? { customer_email: email } : {},
        },
      };
    },
  };
}

export type Identity = ReturnType<typeof createIdentity>;
