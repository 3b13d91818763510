// The wire of call records: list, read, delete, and placing a call. Live streams and control are in
// live-routes.ts, web calls in web-call.ts.
import { Type } from "@sinclair/typebox";
import type { Assistant } from "../assistants/assistants.ts";
import { Fault } from "../core/faults.ts";
import { variablesFrom } from "../core/variables.ts";
import type { Logger } from "../core/logger.ts";
import { prepared } from "../core/schema.ts";
import { json } from "../http/exchange.ts";
import {
  dayQuery, dayRange, pageEnvelope, pageQuery, PageSchema,
} from "../http/pagination.ts";
import { keyRoute, type Route } from "../http/route.ts";
import type { Calling } from "./calling.ts";
import type { Calls } from "./calls.ts";
import { CALL_STATUSES } from "./machine.ts";
import { CALL_TYPES, type Call, type CallFilter } from "./records.ts";
import { CallSchema, wireCall, type RecordingUrl } from "./wire.ts";

export interface CallRouteOptions {
  calls: Calls;
  calling: Calling;
  log: Logger;
  recordingUrl: RecordingUrl;
  findAssistant(accountId: number, assistantId: number): Assistant | null;
  findAssistantByUuid(uuid: string): Assistant | null;
  /** Throws Fault 422 when nothing can speak the assistant's language to a script. */
  assertCanTalk(assistant: Assistant): void;
  /** Throws Fault 422 when the assistant cannot call from the number. */
  assertCanCall(assistant: Assistant, phoneNumber: string | null): void;
  /** The number an assistant calls from; null: the carrier's own. */
  numberOf(assistant: Assistant): string | null;
}

const PER_PAGE_DEFAULT = 15;
const E164 = /^\+[1-9]\d{4,14}$/;
const NOT_FOUND = "Call not found";

const MessageSchema = Type.Object({ message: Type.String() });
const missing = { description: "No such call", schema: MessageSchema };
const COMMON = { tag: "Calls", errorShape: "message" } as const;

const literals = <T extends string>(values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)));
const ListQuery = Type.Object({
  ...pageQuery(PER_PAGE_DEFAULT),
  status: Type.Optional(literals(CALL_STATUSES)),
  type: Type.Optional(literals(CALL_TYPES)),
  phone_number: Type.Optional(Type.String({ maxLength: 255 })),
  assistant_id: Type.Optional(Type.Integer()),
  campaign_id: Type.Optional(Type.Integer()),
  ...dayQuery,
});

/** Numbers as text and a plus sign a query string has turned into a space. */
const asText = prepared((value) => (typeof value === "number" ? String(value) : value));
const MakeCallBody = Type.Object({
  phone_number: Type.String({ maxLength: 255, ...asText }),
  assistant_id: Type.Union([Type.Integer(), Type.String({ maxLength: 64 })]),
  variables: Type.Optional(Type.Unknown()),
});
const LINES_MAX = 20;
const TryCallBody = Type.Object({
  assistant_id: MakeCallBody.properties.assistant_id,
  phone_number: Type.Optional(MakeCallBody.properties.phone_number),
  lines: Type.Optional(Type.Array(
    Type.String({ minLength: 1, maxLength: 300 }), { minItems: 1, maxItems: LINES_MAX })),
  variables: Type.Optional(Type.Unknown()),
});
const LINES = ["Hello. When are you open?", "Thank you, goodbye."];
const CALLER = "+15550100000";
const MadeSchema = Type.Object({
  message: Type.String(),
  call_id: Type.Integer(),
  status: Type.String(),
  data: Type.Object({ id: Type.Integer(), status: Type.String() }),
});

export function callRoutes(options: CallRouteOptions): Route[] {
  return [
    listRoute(options), readRoute(options), deleteRoute(options), makeCallRoute(options),
    tryCallRoute(options),
  ];
}

function listRoute({ calls, recordingUrl }: CallRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/calls",
    summary: "List calls in pages, newest first",
    query: ListQuery,
    responses: { 200: { description: "A page", schema: PageSchema(CallSchema) } },
    handle: ({ caller, query, http, baseUrl }) => {
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
      };
      const { items, total } = calls.page(caller.accountId, filter, { page, perPage });
      const said = calls.transcripts(items.map(({ id }) => id));
      const rows = items.map((call) => wireCall(
        call, said.get(call.id) ?? [], recordingUrl(call, baseUrl)));
      const path = `${baseUrl}/user/calls`;
      return json(200, pageEnvelope(
        { items: rows, total }, { path, query: http.query, page, perPage }));
    },
  });
}

function readRoute({ calls, recordingUrl }: CallRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/calls/{id}",
    summary: "One call",
    notFound: NOT_FOUND,
    responses: { 200: { description: "The call", schema: CallSchema }, 404: missing },
    handle: ({ caller, id, baseUrl }) => {
      const call = calls.get(caller.accountId, id);
      return json(200, wireCall(call, calls.transcript(id), recordingUrl(call, baseUrl)));
    },
  });
}

function deleteRoute({ calls }: CallRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "DELETE",
    path: "/user/calls/{id}",
    summary: "Delete a call with its transcript and recording; what it cost stays in the ledger",
    notFound: "Call not found or does not belong to the authenticated user",
    responses: {
      200: { description: "Deleted", schema: MessageSchema },
      404: missing,
      409: { description: "It has not ended yet", schema: MessageSchema },
    },
    handle: async ({ caller, id }) => {
      await calls.remove(caller.accountId, id);
      return json(200, { message: "Call deleted successfully" });
    },
  });
}

const PLACED = {
  400: { description: "Not a telephone number", schema: MessageSchema },
  404: { description: "No such assistant", schema: MessageSchema },
  422: {
    description: "Balance too low, the assistant cannot talk, or nobody may call the number",
    schema: MessageSchema,
  },
  429: { description: "Too many calls at a time or in a minute", schema: MessageSchema },
};

function numberFrom(text: string): string {
  const number = text.trim();
  if (E164.test(number)) return number;
  throw new Fault(400, "Invalid phone number format. Please use E.164 format (e.g. +1234567890)");
}

/** By id or uuid; active. */
function activeAssistant(
  options: CallRouteOptions, accountId: number, id: number | string,
): Assistant {
  const assistant = /^\d{1,15}$/.test(String(id))
    ? options.findAssistant(accountId, Number(id))
    : options.findAssistantByUuid(String(id));
  if (assistant?.accountId !== accountId) {
    throw new Fault(404, "Assistant not found or does not belong to the authenticated user");
  }
  if (assistant.status !== "active") throw new Fault(422, "The assistant is not active.");
  return assistant;
}

const made = ({ id, status }: Call, message: string) =>
  json(200, { message, call_id: id, status, data: { id, status } });

function makeCallRoute(options: CallRouteOptions): Route {
  const { calls, calling } = options;
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/make_call",
    summary: "Call somebody with an assistant",
    body: MakeCallBody,
    responses: { 200: { description: "Dialling", schema: MadeSchema }, ...PLACED },
    handle: async ({ caller, body }) => {
      const number = numberFrom(body.phone_number);
      const assistant = activeAssistant(options, caller.accountId, body.assistant_id);
      const assistantPhone = options.numberOf(assistant);
      options.assertCanCall(assistant, assistantPhone);
      const { call, secondsMax } = await calls.begin({
        assistant, type: "outbound", conversationUuid: null, assistantPhone, customerPhone: number,
        variables: variablesFrom(body.variables),
      });
      calling.dial(call, assistant, secondsMax);
      return made(call, "Call initiated successfully");
    },
  });
}

function tryCallRoute(options: CallRouteOptions): Route {
  const { calls, calling } = options;
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/try_call",
    summary: "Have a caller of the server's own ring an assistant: no telephone is needed",
    body: TryCallBody,
    responses: { 200: { description: "Ringing", schema: MadeSchema }, ...PLACED },
    handle: async ({ caller, body }) => {
      const number = numberFrom(body.phone_number ?? CALLER);
      const assistant = activeAssistant(options, caller.accountId, body.assistant_id);
      options.assertCanTalk(assistant);
      const { call, secondsMax } = await calls.begin({
        assistant, type: "inbound", conversationUuid: null,
        assistantPhone: options.numberOf(assistant), customerPhone: number,
        variables: variablesFrom(body.variables),
      });
      calling.receive(call, assistant, secondsMax, body.lines ?? LINES).catch((error: unknown) =>
        options.log.error({ err: error, call_id: call.id }, "an inbound call could not be taken"));
      return made(call, "Call initiated successfully");
    },
  });
}
