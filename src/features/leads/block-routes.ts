// The wire of the do-not-call list: numbers that no campaign and no make_call of the account calls.
import { Type } from "@sinclair/typebox";
import { fieldFault } from "#core/faults.ts";
import { about, Nullable } from "#core/schema.ts";
import { MessageSchema, savedOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { pageEnvelope, pageQuery, PageSchema, PER_PAGE_DEFAULT } from "#http/pagination.ts";
import { keyRoute, type Route } from "#http/route.ts";
import type { Leads } from "./leads.ts";
import { readPhoneNumber } from "./phone.ts";
import { BlockedSchema, PhoneText, wireBlocked } from "./wire.ts";

const path = "/user/blocked-numbers";
const COMMON = { tag: "Leads", errorShape: "message", path } as const;
const BlockBody = Type.Object({
  phone_number: PhoneText,
  reason: Type.Optional(Nullable(Type.String({
    maxLength: 255, ...about("Your reason; null if none.", "Asked us not to"),
  }))),
});
const BlockAnswer = Type.Object({
  ...savedOf(BlockedSchema).properties,
  was_blocked: Type.Boolean(about("Whether it was already blocked.", false)),
  blacklisted_leads: Type.Integer(about("The number of leads that became blacklisted.", 1)),
});
/** Where a client cannot send a body with DELETE, the number is in the query. */
const UnblockFields = Type.Object({ phone_number: Type.Optional(PhoneText) });

function numberFrom(text: string | undefined): string {
  // An unescaped plus sign of a query arrives as a space.
  const number = readPhoneNumber((text ?? "").replace(/^ /, "+"));
  if (number) return number.phoneNumber;
  throw fieldFault("phone_number", "Invalid phone number");
}

export function blockRoutes(leads: Leads): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      summary: "List blocked numbers, newest first",
      query: Type.Object(pageQuery()),
      responses: { 200: { description: "A page", schema: PageSchema(BlockedSchema) } },
      handle: async ({ caller, query, http, baseUrl }) => {
        const { page = 1, per_page: perPage = PER_PAGE_DEFAULT } = query;
        const { items, total } = await leads.blockedPage(caller.accountId, { page, perPage });
        return json(200, pageEnvelope(
          { items: items.map(wireBlocked), total },
          { path: `${baseUrl}${path}`, query: http.query, page, perPage }));
      },
    }),
    keyRoute({
      ...COMMON,
      method: "POST",
      summary: "Block a number",
      description: "The number is never called again, and its leads become blacklisted.",
      body: BlockBody,
      responses: {
        200: { description: "Blocked", schema: BlockAnswer },
      },
      handle: async ({ caller, body: { phone_number: text, reason = null } }) => {
        const { blocked, wasBlocked, leads: blacklisted } =
          await leads.block(caller.accountId, numberFrom(text), reason);
        return json(200, {
          message: "Phone number blocked successfully", data: wireBlocked(blocked),
          was_blocked: wasBlocked, blacklisted_leads: blacklisted,
        });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "DELETE",
      summary: "Unblock a number",
      description: "Send the number in the body or the query. Its leads stay blacklisted until you "
        + "change their status.",
      query: UnblockFields,
      body: UnblockFields,
      responses: {
        200: { description: "Unblocked", schema: MessageSchema },
        404: { description: "The number is not blocked" },
      },
      handle: async ({ caller, query, body }) => {
        await leads.unblock(caller.accountId, numberFrom(body.phone_number ?? query.phone_number));
        return json(200, { message: "Phone number unblocked successfully" });
      },
    }),
  ];
}
