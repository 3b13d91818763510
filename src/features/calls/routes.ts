// Routes of call records: list, read, delete, and placing a call. Live streams and control are in
// live-routes.ts, web calls in web-call.ts.
import { Type } from "@sinclair/typebox";
import type { By } from "#features/accounts/audit.ts";
import { isE164 } from "#core/values.ts";
import { Fault } from "#core/faults.ts";
import { variablesFrom } from "#core/variables.ts";
import { about, named, OneOf, prepared } from "#core/schema.ts";
import { IDEMPOTENCY_KEY, IdOf, MessageSchema, replayHeaders } from "#http/answers.ts";
import { json, type HttpRequest } from "#http/exchange.ts";
import {
  dayQuery, dayRange, pageEnvelope, pageQuery, PageSchema, PER_PAGE_DEFAULT,
} from "#http/pagination.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import { readIdempotencyKey } from "#http/validation.ts";
import type { Calling } from "./calling.ts";
import type { Calls } from "./calls.ts";
import { activeAssistant, type AskedCall, type PlacedCall, type PlacingOptions } from "./placing.ts";
import { CALL_STATUSES } from "./records/status.ts";
import type { Recordings } from "./records/recordings.ts";
import { CALL_TYPES, type CallFilter } from "./records/records.ts";
import type { TrialCall } from "./trial-call.ts";
import { CallSchema, wireCall } from "./records/wire.ts";

interface CallRouteOptions {
  calls: Calls;
  calling: Calling;
  recordingLink: Recordings["linkOf"];
  /** Places it at whichever node can. */
  place(asked: AskedCall): Promise<PlacedCall>;
  findAssistant: PlacingOptions["findAssistant"];
  findAssistantByUuid: PlacingOptions["findAssistantByUuid"];
  tryCall: TrialCall;
  byOf(caller: Caller, http: HttpRequest): Promise<By>;
}

const NOT_FOUND = "Call not found";

const COMMON = { tag: "Calls", errorShape: "message" } as const;
const params = { id: IdOf("call", "GET /user/calls") };

const SEARCH_CHARS_MAX = 200;
const ListQuery = Type.Object({
  ...pageQuery(),
  status: Type.Optional(OneOf(CALL_STATUSES, about("Only calls with this status."))),
  type: Type.Optional(OneOf(CALL_TYPES, about("Only calls of this type."))),
  phone_number: Type.Optional(Type.String({
    maxLength: 255, ...about("Only calls with this exact client number.", "+4930123456"),
  })),
  assistant_id: Type.Optional(Type.Integer(about("Only calls of this assistant.", 1))),
  campaign_id: Type.Optional(Type.Integer(about("Only calls of this campaign.", 1))),
  ...dayQuery,
  search: Type.Optional(Type.String({
    maxLength: SEARCH_CHARS_MAX,
    ...about("Only calls with this text in the transcript, number or variables. Searches the "
      + "newest 2,000 calls.",
      "refund"),
  })),
});

/** Accepts a number in JSON where a telephone number is expected as text. */
const asText = prepared((value) => (typeof value === "number" ? String(value) : value));
const VARIABLES = Type.Unknown(about(
  "Values for `{{name}}` in prompt and messages, by name.", { first_name: "Ada" }));
const MakeCallBody = Type.Object({
  phone_number: Type.String({
    maxLength: 255, ...asText, ...about("The number to call, in E.164.", "+4915112345678"),
  }),
  assistant_id: Type.Union(
    [Type.Integer(), Type.String({ maxLength: 64 })],
    about("The assistant that makes the call: its `id` or `uuid`.", 1)),
  variables: Type.Optional(VARIABLES),
});
const LINES_MAX = 20;
const MANY_MAX = 100;
const TryCallBody = Type.Object({
  assistant_id: MakeCallBody.properties.assistant_id,
  phone_number: Type.Optional(Type.String({
    maxLength: 255, ...asText, ...about("The caller's number, in E.164.", "+15550100000"),
  })),
  lines: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 300 }), {
    minItems: 1, maxItems: LINES_MAX,
    ...about("What the caller says, line by line.", ["When are you open?", "Goodbye."]),
  })),
  variables: Type.Optional(VARIABLES),
});
const MadeSchema = Type.Object({
  message: MessageSchema.properties.message,
  call_id: Type.Integer(about("The call's number.", 12)),
  status: Type.String(about("How far it is.", "initiated")),
  data: Type.Object({
    id: Type.Integer(about("The call's number.", 12)),
    status: Type.String(about("How far it is.", "initiated")),
  }, about("The same value, for other clients.")),
}, named("PlacedCall", "A call that was started."));

export function callRoutes(options: CallRouteOptions): Route[] {
  return [
    listRoute(options), readRoute(options), deleteRoute(options), bulkDeleteRoute(options),
    makeCallRoute(options),
    tryCallRoute(options),
  ];
}

function listRoute({ calls, recordingLink }: CallRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/calls",
    summary: "List calls in pages, newest first",
    query: ListQuery,
    responses: { 200: { description: "A page", schema: PageSchema(CallSchema) } },
    handle: async ({ caller, query, http, baseUrl }) => {
      const { page = 1, per_page: perPage = PER_PAGE_DEFAULT } = query;
      const filter: CallFilter = {
        ...(query.status === undefined ? {} : { status: query.status }),
        ...(query.type === undefined ? {} : { type: query.type }),
        // An unescaped plus sign arrives as a space.
        ...(query.phone_number === undefined
          ? {}
          : { phoneNumber: query.phone_number.replace(/^ /, "+") }),
        ...(query.assistant_id === undefined ? {} : { assistantId: query.assistant_id }),
        ...(query.campaign_id === undefined ? {} : { campaignId: query.campaign_id }),
        ...dayRange(query),
        ...query.search?.trim() ? { search: query.search.trim() } : {},
      };
      const { items, total } = await calls.page(caller.accountId, filter, { page, perPage });
      const said = await calls.transcripts(items.map(({ id }) => id));
      const rows = items.map((call) => wireCall(
        call, said.get(call.id) ?? [], (file) => recordingLink(file, baseUrl)));
      const path = `${baseUrl}/user/calls`;
      return json(200, pageEnvelope(
        { items: rows, total }, { path, query: http.query, page, perPage }));
    },
  });
}

function readRoute({ calls, recordingLink }: CallRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/calls/{id}",
    summary: "Read a call",
    notFound: NOT_FOUND,
    params,
    responses: { 200: { description: "The call", schema: CallSchema } },
    handle: async ({ caller, id, baseUrl }) => {
      const call = await calls.get(caller.accountId, id);
      const said = await calls.transcript(id);
      return json(200, wireCall(call, said, (file) => recordingLink(file, baseUrl)));
    },
  });
}

function deleteRoute({ calls }: CallRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "DELETE",
    path: "/user/calls/{id}",
    summary: "Delete a call",
    description: "Also deletes its transcript and recording. Its cost stays in the ledger.",
    params,
    notFound: "Call not found or does not belong to the authenticated user",
    responses: {
      200: { description: "Deleted", schema: MessageSchema },
      409: { description: "The call has not ended yet" },
    },
    handle: async ({ caller, id }) => {
      await calls.remove(caller.accountId, id);
      return json(200, { message: "Call deleted successfully" });
    },
  });
}

function bulkDeleteRoute({ calls, byOf }: CallRouteOptions): Route {
  const ids = (what: string) => Type.Array(Type.Integer(), about(what, [12]));
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/calls/bulk-delete",
    summary: `Delete up to ${MANY_MAX} calls`,
    description: "Deletes each call as `DELETE /user/calls/{id}` does. Calls that have not ended "
      + "are kept and listed in the response.",
    body: Type.Object({
      call_ids: {
        ...ids("The calls to delete, by `id`. Ids that are not in the account are ignored."),
        minItems: 1, maxItems: MANY_MAX,
      },
    }),
    responses: {
      200: {
        description: "The outcome",
        schema: Type.Object({
          deleted: ids("The ids that were "
            + "deleted."), live: ids("Calls that have not ended and were "
            + "kept."),
        }),
      },
    },
    handle: async ({ caller, body, http }) => {
      const { deleted, live } = await calls.removeMany(
        caller.accountId, [...new Set(body.call_ids)], await byOf(caller, http));
      return json(200, { deleted, live });
    },
  });
}

const PLACED = {
  400: { description: "Not a telephone number, or the body is not a JSON object" },
  404: { description: "No such assistant" },
  422: {
    description: "The balance is too low, the assistant cannot talk, or the number is blocked",
  },
  429: { description: "Too many requests, concurrent calls or calls per minute" },
  503: { description: "The server is at its limit of concurrent calls" },
};

function numberFrom(text: string): string {
  const number = text.trim();
  if (isE164(number)) return number;
  throw new Fault(400, "Invalid phone number format. Please use E.164 format (e.g. +1234567890)");
}

const made = ({ id, status, replayed }: PlacedCall, message: string) =>
  json(200, { message, call_id: id, status, data: { id, status } },
    replayHeaders(replayed));

function makeCallRoute(options: CallRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/make_call",
    summary: "Make a call",
    description: "Returns as soon as the number is dialled. Follow the call with "
      + "`/user/calls/{id}/stream`.",
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: MakeCallBody,
    responses: { 200: { description: "Dialling", schema: MadeSchema }, ...PLACED },
    handle: async ({ caller, body, http }) => made(await options.place({
      accountId: caller.accountId, assistantId: body.assistant_id,
      number: numberFrom(body.phone_number), variables: variablesFrom(body.variables),
      idempotencyKey: readIdempotencyKey(http.headers["idempotency-key"]),
    }), "Call initiated successfully"),
  });
}

function tryCallRoute(options: CallRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/try_call",
    summary: "Try an assistant on a call",
    description: "The server itself calls the assistant and says the lines you give. No telephone "
      + "is needed.",
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: TryCallBody,
    responses: { 200: { description: "Ringing", schema: MadeSchema }, ...PLACED },
    handle: async ({ caller, body, http }) => {
      const { phone_number: asked, lines, variables } = body;
      const number = asked === undefined ? {} : { number: numberFrom(asked) };
      const assistant = await activeAssistant(options, caller.accountId, body.assistant_id);
      const call = await options.tryCall(assistant, {
        ...number, ...lines === undefined ? {} : { lines }, variables: variablesFrom(variables),
        idempotencyKey: readIdempotencyKey(http.headers["idempotency-key"]),
      });
      return made(call, "Call initiated successfully");
    },
  });
}
