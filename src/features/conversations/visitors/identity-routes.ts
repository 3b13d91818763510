// Where an owner creates and rotates the secret with which a site signs its visitors' ids.
import { Type } from "@sinclair/typebox";
import type { Assistants } from "#features/assistants/assistants.ts";
import { about, named, Nullable } from "#core/schema.ts";
import { isoOrNull } from "#core/system.ts";
import { IdOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import type { Identity, IdentityState } from "./identity.ts";

interface IdentityRouteOptions {
  identity: Identity;
  /** Null: the account has no such assistant. */
  getAssistant: Assistants["get"];
}

const STATE = {
  is_set: Type.Boolean(about("Whether there is a secret to sign visitors with.")),
  changed_at: Nullable(Type.String(about(
    "When this secret was created, in UTC. The previous one stays valid for one day after.",
    "2026-03-02T09:30:00.000000Z"))),
};
const Secret = Type.Object({
  ...STATE,
  secret: Type.String(about("The HMAC key, shown only once.", "6f0c1c9d")),
}, named("IdentitySecret", "The secret a site signs its visitors' ids with."));

const stateItem = ({ number, changedAt }: IdentityState) =>
  ({ is_set: number > 0, changed_at: isoOrNull(changedAt) });

export function identityRoutes({ identity, getAssistant }: IdentityRouteOptions): Route[] {
  const common = {
    tag: "Assistants", errorShape: "message", notFound: "Assistant not found",
    params: { id: IdOf("assistant", "GET /user/assistants/get") },
    path: "/user/assistants/{id}/identity-secret",
  } as const;
  const missing = { description: "No such assistant" };
  return [
    keyRoute({
      ...common,
      method: "GET",
      summary: "Get whether an assistant has an identity secret",
      responses: {
        200: { description: "The state, without the secret itself",
          schema: Type.Object(STATE) }, 404: missing,
      },
      handle: async ({ caller, id }) => {
        const state = await identity.state((await getAssistant(caller.accountId, id)).id);
        return json(200, stateItem(state ?? { number: 0, changedAt: null }));
      },
    }),
    keyRoute({
      ...common,
      method: "POST",
      summary: "Create or replace the secret that signs visitors",
      description: "Signatures made with the previous secret stay valid for one day.",
      responses: { 201: { description: "The secret", schema: Secret }, 404: missing },
      handle: async ({ caller, id }) => {
        const { accountId } = caller;
        const made = await identity.rotate(accountId, await getAssistant(accountId, id));
        return json(201, { ...stateItem(made), secret: made.secret });
      },
    }),
  ];
}
