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
  is_set: Type.Boolean(about("Whether there is a secret, so that visitors can be signed.")),
  changed_at: Nullable(Type.String(about(
    "Since when it is this one, in UTC; for a day the one before is taken as well.",
    "2026-03-02T09:30:00.000000Z"))),
};
const Secret = Type.Object({
  ...STATE,
  secret: Type.String(about("The key of the HMAC; shown this once.", "6f0c1c9d")),
}, named("IdentitySecret", "What a site signs its visitors' ids with."));

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
      summary: "Whether visitors of an assistant can be signed",
      responses: {
        200: { description: "Without the secret", schema: Type.Object(STATE) }, 404: missing,
      },
      handle: async ({ caller, id }) => {
        const state = await identity.state((await getAssistant(caller.accountId, id)).id);
        return json(200, stateItem(state ?? { number: 0, changedAt: null }));
      },
    }),
    keyRoute({
      ...common,
      method: "POST",
      summary: "Make the secret visitors are signed with, or a new one in its place",
      description: "For a day signatures of the one before are taken as well.",
      responses: { 201: { description: "The secret", schema: Secret }, 404: missing },
      handle: async ({ caller, id }) => {
        const { accountId } = caller;
        const made = await identity.rotate(accountId, await getAssistant(accountId, id));
        return json(201, { ...stateItem(made), secret: made.secret });
      },
    }),
  ];
}
