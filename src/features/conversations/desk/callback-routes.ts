// Callbacks and read positions on the wire, for visitors and for the account; labels of a
// conversation.
import { Type } from "@sinclair/typebox";
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { about, named, NonBlank, Nullable } from "#core/schema.ts";
import type { System } from "#core/system.ts";
import type { Author } from "#events/events.ts";
import { dataOf, listOf, Moment } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, publicRoute, type Caller, type Route } from "#http/route.ts";
import type { Access } from "#features/conversations/access.ts";
import { callbackItem, type Callbacks } from "./callbacks.ts";
import type { Conversations } from "#features/conversations/conversations.ts";
import { OF_OWNER, OF_VISITOR } from "#features/conversations/wire.ts";
import type { Inbox } from "./inbox.ts";
import { awayOf } from "./office-hours.ts";
import type { Reading } from "./reading.ts";

interface CallbackRouteOptions {
  callbacks: Callbacks;
  reading: Reading;
  inbox: Pick<Inbox, "label" | "labels">;
  conversations: Pick<Conversations, "get" | "summary">;
  findAssistant(assistantId: number): Promise<Assistant | null>;
  access: Access;
  authorOf(caller: Caller): Promise<Author>;
  system: System;
}

const NAME_CHARS_MAX = 120;
const ADDRESS_CHARS_MAX = 254;
const WISH_CHARS_MAX = 1000;
const LABELS_MAX = 20;

const Text = (max: number, description: string, example: string) =>
  Type.String({ maxLength: max, ...about(description, example) });
const FIELDS = {
  phone: Text(ADDRESS_CHARS_MAX, "A telephone number, as the visitor wrote it.", "+49 30 1234"),
  email: Text(ADDRESS_CHARS_MAX, "An e-mail address.", "bo@example.com"),
  wish: Text(WISH_CHARS_MAX, "What it is about.", "My order has not come."),
  time: Text(NAME_CHARS_MAX, "When the visitor wants to be reached.", "after 5 pm"),
};
const Name = NonBlank(NAME_CHARS_MAX, about("The visitor's name.", "Bo"));
const WISH = Type.Object({
  name: Name, ...Type.Partial(Type.Object(FIELDS)).properties,
});
const orNull = (field: keyof typeof FIELDS) =>
  Nullable(FIELDS[field], about(`${FIELDS[field].description ?? ""} Null if not given.`));
export const CallbackSchema = Type.Object({
  id: Type.Integer(about("The callback's number.", 3)),
  name: Name,
  phone: orNull("phone"), email: orNull("email"), wish: orNull("wish"), time: orNull("time"),
  created_at: Moment("When it was requested, in UTC."),
  done_at: Nullable(Moment("When it was done, in UTC."), about("Null if it is open.")),
}, named("Callback", "How a visitor wants to be reached."));

export const LabelsSchema = listOf(Type.Object({
  id: Type.Integer(about("The label's number.", 1)),
  name: Type.String(about("The name.", "Refunds")),
  color: Nullable(Type.String(about("The colour; null for none.", "teal"))),
}, named("ConversationLabel", "A label of the account.")), "By name.");

const NOT_FOUND = { description: "No such conversation" };
const DONE = Type.Object({ status: Type.Literal(true, about("Always true.")) });

const said = (text: string | undefined): string | null => {
  const trimmed = text?.trim() ?? "";
  return trimmed === "" ? null : trimmed;
};

export function callbackRoutes(options: CallbackRouteOptions): Route[] {
  return [
    requestRoute(options), ...accountCallbackRoutes(options), ...readRoutes(options),
    ...labelRoutes(options),
  ];
}

function requestRoute(options: CallbackRouteOptions): Route {
  const { callbacks, conversations, findAssistant, access, system } = options;
  return publicRoute({
    ...OF_VISITOR,
    method: "POST",
    path: "/conversations/{uuid}/callback",
    summary: "Request a callback, if the assistant allows it",
    description: "Requires `phone` or `email`. A new request replaces the earlier one.",
    body: WISH,
    responses: {
      201: {
        description: "The callback is in the inbox",
        schema: Type.Object({
          status: Type.Literal(true, about("Always true.")),
          callback: CallbackSchema,
        }),
      },
      403: { description: "The assistant does not allow it, or this page's origin may not use the "
        + "assistant" },
      404: NOT_FOUND,
      429: { description: "Too many requests" },
    },
    handle: async ({ uuid, body }) => {
      const { accountId, assistantId } = await conversations.get(uuid);
      await access.assertMaySend(uuid);
      const assistant = await findAssistant(assistantId);
      if (assistant?.settings.desk.office_hours?.callback !== true) {
        throw new Fault(403, "This assistant does not accept callback requests.");
      }
      const wish = {
        name: body.name.trim(), phone: said(body.phone), email: said(body.email),
        wish: said(body.wish), time: said(body.time),
      };
      if (wish.phone === null && wish.email === null) {
        throw fieldFault("phone", "A phone number or an email is required.");
      }
      if (wish.phone !== null && !/\d.*\d.*\d/.test(wish.phone)) {
        throw fieldFault("phone", "The phone number is invalid.");
      }
      if (wish.email !== null && !/^[^\s@]+@[^\s@]+$/.test(wish.email)) {
        throw fieldFault("email", "The email is invalid.");
      }
      const callback = await callbacks.request(
        { accountId, uuid, away: awayOf(assistant, system.now()) }, wish);
      return json(201, { status: true, callback: callbackItem(callback) });
    },
  });
}

function accountCallbackRoutes(
  { callbacks, conversations, authorOf }: CallbackRouteOptions,
): Route[] {
  return [
    keyRoute({
      ...OF_OWNER,
      method: "GET",
      path: "/user/conversations/{uuid}/callbacks",
      summary: "List the callbacks a visitor asked for",
      responses: {
        200: { description: "Callbacks", schema: dataOf(listOf(CallbackSchema, "Newest first.")) },
        404: NOT_FOUND,
      },
      handle: async ({ caller, uuid }) => {
        const { id } = await conversations.summary(caller.accountId, uuid);
        return json(200, { data: (await callbacks.list(id)).map(callbackItem) });
      },
    }),
    keyRoute({
      ...OF_OWNER,
      method: "POST",
      path: "/user/conversations/{uuid}/callback/done",
      summary: "Mark the callback as done",
      responses: {
        200: { description: "The callback is done", schema: dataOf(CallbackSchema) },
        404: { description: "No such conversation, or no open callback" },
      },
      handle: async ({ caller, uuid }) => {
        const { accountId } = caller;
        const done = await callbacks.finish({ accountId, uuid, author: await authorOf(caller) });
        return json(200, { data: callbackItem(done) });
      },
    }),
  ];
}

function readRoutes({ reading, conversations, access, authorOf }: CallbackRouteOptions): Route[] {
  const common = {
    method: "POST", summary: "Mark the conversation as read",
    description: "Both sides receive a `conversation_read` event. A visitor's is stored only if a "
      + "person has written since the last one.",
  } as const;
  return [
    publicRoute({
      ...OF_VISITOR,
      ...common,
      path: "/conversations/{uuid}/read",
      responses: {
        200: { description: "Marked as read", schema: DONE }, 404: NOT_FOUND,
        429: { description: "Too many requests" },
      },
      handle: async ({ uuid }) => {
        const { accountId } = await conversations.get(uuid);
        access.assertMayType(uuid);
        await reading.read({ accountId, uuid, author: null });
        return json(200, { status: true });
      },
    }),
    keyRoute({
      ...OF_OWNER,
      ...common,
      path: "/user/conversations/{uuid}/read",
      responses: { 200: { description: "Marked as read", schema: DONE }, 404: NOT_FOUND },
      handle: async ({ caller, uuid }) => {
        const { accountId } = caller;
        await reading.read({ accountId, uuid, author: await authorOf(caller) });
        return json(200, { status: true });
      },
    }),
  ];
}

function labelRoutes({ inbox, conversations }: CallbackRouteOptions): Route[] {
  const path = "/user/conversations/{uuid}/labels";
  return [keyRoute({
    ...OF_OWNER,
    path,
    method: "GET",
    summary: "List a conversation's labels",
    responses: { 200: { description: "Labels", schema: dataOf(LabelsSchema) }, 404: NOT_FOUND },
    handle: async ({ caller, uuid }) => {
      const { id } = await conversations.summary(caller.accountId, uuid);
      return json(200, { data: await inbox.labels(id) });
    },
  }), keyRoute({
    ...OF_OWNER,
    path,
    method: "PUT",
    summary: "Replace a conversation's labels",
    body: Type.Object({
      label_ids: Type.Array(Type.Integer(), {
        maxItems: LABELS_MAX, ...about("The `id`s of all its labels; an empty list removes them.",
          [1]),
      }),
    }),
    responses: { 200: { description: "The labels were set", schema: DONE }, 404: NOT_FOUND },
    handle: async ({ caller, uuid, body }) => {
      await inbox.label(caller.accountId, uuid, body.label_ids);
      return json(200, { status: true });
    },
  })];
}
