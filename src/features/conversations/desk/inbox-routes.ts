// The inbox's routes: queues with their counts, notes, canned replies.
import { Type } from "@sinclair/typebox";
import { fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named, NonBlank, Nullable, OneOf } from "#core/schema.ts";
import { isoMicros, isoOrNull, plainSeconds } from "#core/system.ts";
import type { Author } from "#events/events.ts";
import {
  dataOf, IdOf, listOf, MessageSchema, Moment, PlainMoment, savedOf, TIMES,
} from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { PER_PAGE_DEFAULT } from "#http/pagination.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import { SUMMARY } from "#features/conversations/account-routes.ts";
import type { Conversations } from "#features/conversations/conversations.ts";
import { CallbackSchema, LabelsSchema } from "./callback-routes.ts";
import { callbackItem } from "./callbacks.ts";
import { AuthorSchema } from "./wire.ts";
import { QUEUES, type CannedReply, type Inbox, type InboxRow, type Note } from "./inbox.ts";
import {
  lastItem, LastMessageField, OF_OWNER, SearchField, searchOf, summaryItem,
} from "#features/conversations/wire.ts";

interface InboxRouteOptions {
  inbox: Inbox;
  conversations: Pick<Conversations, "summary">;
  authorOf(caller: Caller): Promise<Author>;
}

const SHORTCUT_CHARS_MAX = 40;
const ASKED = Type.Object({
  queue: Type.Optional(OneOf(QUEUES, {
    default: "waiting",
    ...about("waiting: conversations that wait for a person. mine: conversations you have. all: "
      + "every open conversation."),
  })),
  search: SearchField,
  label_id: Type.Optional(Type.Integer(about("Only conversations with this label.", 1))),
  assistant_id: Type.Optional(Type.Integer(about("Only conversations with the assistant of this "
    + "`id`.",
    1))),
  callback: Type.Optional(Type.Boolean(about("True: only conversations with an open callback."))),
  unread: Type.Optional(Type.Boolean(about("True: only conversations with messages you have not "
    + "read."))),
  per_page: Type.Optional(Type.Integer({
    minimum: 1, maximum: LIMITS.pageSizeMax, default: PER_PAGE_DEFAULT, ...about("Rows per page."),
  })),
  cursor: Type.Optional(Type.String(about("The `next_cursor` of the previous page.",
    "MTc3Mi4xMg"))),
});
const Count = (description: string) => Type.Integer(about(description, 2));
const ROW = Type.Object({
  ...SUMMARY.properties,
  since: PlainMoment("When it began to wait or a person took it, otherwise the time of its last "
    + "message, in UTC."),
  last_message: LastMessageField,
  unread: Type.Boolean(about("Whether somebody else has written since you last read it.")),
  visitor_read_at: Nullable(Moment("Until when the visitor has read, in UTC."), about(
    "When the visitor last read the conversation, in UTC; null if not known.")),
  labels: LabelsSchema,
  callback: Nullable(CallbackSchema, about("The open callback; null if none.")),
}, named("InboxConversation", "A conversation, as in the inbox."));
const NOTE = Type.Object({
  id: Type.Integer(about("The note's number.", 1)),
  author: Nullable(AuthorSchema, about("Who wrote it; null: the assistant.")),
  text: Type.String(about("The note; visitors never see it.", "Wants a refund.")),
  created_at: Moment("When it was written, in UTC."),
}, named("Note", "A note on a conversation."));
const CANNED_FIELDS = {
  shortcut: Type.String({
    pattern: "^\\S+$", maxLength: SHORTCUT_CHARS_MAX,
    ...about("The shortcut it is found by, without spaces.", "hours"),
  }),
  text: NonBlank(LIMITS.messageCharsMax, about(
    "The answer; `{{name}}` is filled in from the conversation's variables.",
    "Hello {{customer_name}}, we are open from 9 to 5.")),
};
const CANNED = Type.Object({
  id: Type.Integer(about("The canned reply's number.", 1)), ...CANNED_FIELDS, ...TIMES,
}, named("CannedReply", "A canned reply."));

const noteItem = ({ id, author, text, createdAt }: Note) =>
  ({ id, author, text, created_at: isoMicros(createdAt) });
const cannedItem = ({ id, shortcut, text, createdAt, updatedAt }: CannedReply) =>
  ({ id, shortcut, text, created_at: isoMicros(createdAt), updated_at: isoMicros(updatedAt) });
const rowItem = (row: InboxRow) => ({
  ...summaryItem(row),
  since: plainSeconds(row.since),
  last_message: lastItem(row.last),
  unread: row.isUnread,
  visitor_read_at: isoOrNull(row.visitorReadAt),
  labels: row.labels,
  callback: row.callback && callbackItem(row.callback),
});

const encodeCursor = ({ since, id }: InboxRow): string =>
  Buffer.from(`${since}.${id}`).toString("base64url");

function decodeCursor(text: string | undefined): { since: number; id: number } | null {
  if (text === undefined) return null;
  const match = /^(\d{1,16})\.(\d{1,15})$/.exec(Buffer.from(text, "base64url").toString("utf8"));
  if (match) return { since: Number(match[1]), id: Number(match[2]) };
  throw fieldFault("cursor", "The selected cursor is invalid.");
}

export function inboxRoutes(options: InboxRouteOptions): Route[] {
  return [listRoute(options), ...noteRoutes(options), ...cannedRoutes(options)];
}

function listRoute({ inbox, authorOf }: InboxRouteOptions): Route {
  return keyRoute({
    method: "GET",
    path: "/user/inbox",
    tag: "Conversations",
    summary: "List the inbox: conversations that wait, that are yours, or that are open",
    errorShape: "message",
    query: ASKED,
    responses: {
      200: {
        description: "A page of the queue, oldest first, and the size of each queue",
        schema: Type.Object({
          data: listOf(ROW, "Oldest first."),
          counts: Type.Object({
            waiting: Count("Conversations that wait for a person."),
            mine: Count("Conversations you have."), all: Count("Conversations that are open."),
          }, about("How many conversations are in each queue.")),
          me: AuthorSchema,
          next_cursor: Nullable(Type.String(about(
            "Value for the next page; null on the last page.", "MTc3Mi4xMg"))),
        }),
      },
    },
    handle: async ({ caller, query }) => {
      const { accountId } = caller;
      const me = await authorOf(caller);
      const perPage = query.per_page ?? PER_PAGE_DEFAULT;
      const [rows, counts] = await Promise.all([
        inbox.page({
          accountId, holderId: me.id, queue: query.queue ?? "waiting",
          search: searchOf(query.search).search ?? null,
          filter: {
            labelId: query.label_id, assistantId: query.assistant_id,
            hasCallback: query.callback, isUnread: query.unread,
          },
          after: decodeCursor(query.cursor), rows: perPage + 1,
        }),
        inbox.counts(accountId, me.id),
      ]);
      const page = rows.slice(0, perPage);
      const last = page.at(-1);
      const next = rows.length > perPage && last ? encodeCursor(last) : null;
      return json(200, { data: page.map(rowItem), counts, me, next_cursor: next });
    },
  });
}

function noteRoutes({ inbox, conversations, authorOf }: InboxRouteOptions): Route[] {
  const common = { ...OF_OWNER, path: "/user/conversations/{uuid}/notes" } as const;
  return [
    keyRoute({
      ...common,
      method: "GET",
      summary: "List the notes on a conversation",
      responses: { 200: { description: "Notes", schema: dataOf(listOf(NOTE, "Oldest first.")) } },
      handle: async ({ caller, uuid }) => {
        const { id } = await conversations.summary(caller.accountId, uuid);
        return json(200, { data: (await inbox.notes(id)).map(noteItem) });
      },
    }),
    keyRoute({
      ...common,
      method: "POST",
      summary: "Add a note to a conversation; visitors never see it",
      body: Type.Object({
        text: NonBlank(LIMITS.noteCharsMax, about("The note.", "Wants a refund.")),
      }),
      responses: { 201: { description: "The note", schema: dataOf(NOTE) } },
      handle: async ({ caller, uuid, body }) => json(201, {
        data: noteItem(
          await inbox.addNote(caller.accountId, uuid, await authorOf(caller), body.text)),
      }),
    }),
  ];
}

function cannedRoutes({ inbox }: InboxRouteOptions): Route[] {
  const common = { tag: "Conversations", errorShape: "message" } as const;
  const one = {
    ...common, path: "/user/canned-replies/{id}", notFound: "Canned reply not found",
    params: { id: IdOf("canned reply", "GET /user/canned-replies") },
  };
  const NONE = { description: "No such canned reply" };
  const body = Type.Object(CANNED_FIELDS);
  return [
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/canned-replies",
      summary: "List canned replies",
      responses: {
        200: { description: "The list", schema: dataOf(listOf(CANNED, "By shortcut.")) },
      },
      handle: async ({ caller }) =>
        json(200, { data: (await inbox.cannedReplies(caller.accountId)).map(cannedItem) }),
    }),
    keyRoute({
      ...common,
      method: "POST",
      path: "/user/canned-replies",
      summary: "Create a canned reply",
      body,
      responses: { 201: { description: "The canned reply was created", schema: savedOf(CANNED) } },
      handle: async ({ caller, body: given }) => json(201, {
        message: "Canned reply created successfully",
        data: cannedItem(await inbox.saveCannedReply(caller.accountId, null, given)),
      }),
    }),
    keyRoute({
      ...one,
      method: "PUT",
      summary: "Change a canned reply",
      body,
      responses: { 200: { description: "The canned reply was changed",
        schema: savedOf(CANNED) }, 404: NONE },
      handle: async ({ caller, id, body: given }) => json(200, {
        message: "Canned reply updated successfully",
        data: cannedItem(await inbox.saveCannedReply(caller.accountId, id, given)),
      }),
    }),
    keyRoute({
      ...one,
      method: "DELETE",
      summary: "Delete a canned reply",
      responses: { 200: { description: "The canned reply was deleted", schema: MessageSchema }, 404: NONE },
      handle: async ({ caller, id }) => {
        await inbox.removeCannedReply(caller.accountId, id);
        return json(200, { message: "Canned reply deleted successfully" });
      },
    }),
  ];
}
