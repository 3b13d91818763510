// What people at the desk do with a conversation: take it over, answer, hand it back, assign it to
// somebody else, end it. Visitors request a person here too, where the assistant allows it.
import { Type } from "@sinclair/typebox";
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named } from "#core/schema.ts";
import { isoMicros, type System } from "#core/system.ts";
import type { Author } from "#events/events.ts";
import { IDEMPOTENCY_KEY, Moment, replayHeaders } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, publicRoute, type Caller, type Route } from "#http/route.ts";
import { readIdempotencyKey } from "#http/validation.ts";
import type { Access } from "#features/conversations/access.ts";
import type { Attachments } from "#features/conversations/attachments.ts";
import type { Conversations } from "#features/conversations/conversations.ts";
import type { Desk } from "./desk.ts";
import { AuthorSchema, AwaySchema, deskItem, DeskSchema, DeskState } from "./wire.ts";
import type { Handover } from "./handover.ts";
import { awayOf } from "./office-hours.ts";
import { assertOwned } from "#features/conversations/outcomes.ts";
import type { Message } from "#features/conversations/records.ts";
import { ATTACHMENTS, requiredText } from "#features/conversations/routes.ts";
import { AttachmentSchema, OF_OWNER, OF_VISITOR } from "#features/conversations/wire.ts";

interface DeskRouteOptions {
  handover: Handover;
  attachments: Pick<Attachments, "named">;
  conversations: Pick<Conversations, "get">;
  findAssistant(assistantId: number): Promise<Assistant | null>;
  access: Access;
  system: System;
  /** The author that readers see for what the caller writes. */
  authorOf(caller: Caller): Promise<Author>;
  /** Null: the account has no such person. */
  findAuthor(accountId: number, id: string): Promise<Author | null>;
}

const HELD = { description: "Somebody else has the conversation" };
const NOT_FOUND = { description: "No such conversation" };

const REASON = Type.Object({
  reason: Type.Optional(Type.String({
    maxLength: LIMITS.noteCharsMax,
    ...about("A note for the person who answers; visitors do not see it.", "Wants a refund."),
  })),
});
const WRITE = Type.Object({
  message: Type.Optional(Type.String({
    maxLength: LIMITS.messageCharsMax,
    ...about("The text of the message; required unless files are attached.", "Hello, this is Ana."),
  })),
  attachments: Type.Optional(ATTACHMENTS),
});
const OperatorMessage = Type.Object({
  role: Type.Literal("operator", about("Always operator: a member of the account.")),
  content: Type.String(about("The text.", "Hello, this is Ana.")),
  author: AuthorSchema,
  attachments: Type.Optional(Type.Array(AttachmentSchema, about(
    "Files attached to the message; absent if none."))),
  created_at: Moment("When it was stored, in UTC."),
}, named("OperatorMessage", "A message from a member of the account."));

const messageItem = ({ content, author, attachments, createdAt }: Message) => ({
  role: "operator", content, author, ...attachments.length > 0 ? { attachments } : {},
  created_at: isoMicros(createdAt),
});

export function deskRoutes(options: DeskRouteOptions): Route[] {
  const { handover } = options;
  return [
    moveRoute(options, {
      action: "take-over", summary: "Take over a conversation; the assistant stays silent",
      description: "A reply that is being written is stopped, as with the stop button.",
      refusals: { 409: HELD },
      move: (place) => handover.takeOver(place),
    }),
    moveRoute(options, {
      action: "hand-back", summary: "Hand a conversation back to the assistant, whoever has it",
      move: (place) => handover.handBack(place),
    }),
    askRoute(options),
    writeRoute(options),
    endRoute(options),
    assignRoute(options),
    visitorAskRoute(options),
    ...typingRoutes(options),
  ];
}

function moveRoute({ authorOf }: DeskRouteOptions, {
  action, summary, description, refusals, move,
}: {
  action: string; summary: string; description?: string; refusals?: Route["responses"];
  move(place: { accountId: number; uuid: string; author: Author }): Promise<Desk>;
}): Route {
  return keyRoute({
    ...OF_OWNER,
    method: "POST",
    path: `/user/conversations/{uuid}/${action}`,
    summary,
    ...(description === undefined ? {} : { description }),
    responses: {
      200: { description: "Who has the conversation",
        schema: DeskSchema }, 404: NOT_FOUND, ...refusals,
    },
    handle: async ({ caller, uuid }) => json(200, deskItem(await move(
      { accountId: caller.accountId, uuid, author: await authorOf(caller) }))),
  });
}

function askRoute(
  { handover, authorOf, conversations, findAssistant, system }: DeskRouteOptions,
): Route {
  return keyRoute({
    ...OF_OWNER,
    method: "POST",
    path: "/user/conversations/{uuid}/request-human",
    summary: "Request a person",
    description: "The assistant keeps answering until a person takes over.",
    body: REASON,
    responses: { 200: { description: "Who has the conversation",
      schema: DeskSchema }, 404: NOT_FOUND },
    handle: async ({ caller, uuid, body }) => {
      const by = { role: "operator", ...await authorOf(caller) } as const;
      const { assistantId } = await conversations.get(uuid);
      const assistant = await findAssistant(assistantId);
      return json(200, deskItem(await handover.ask({
        accountId: caller.accountId, uuid, by, reason: "asked", note: noteOf(body.reason),
        away: assistant && awayOf(assistant, system.now()),
      })));
    },
  });
}

const noteOf = (text: string | undefined): string | null =>
  text === undefined || text.trim() === "" ? null : text;

function writeRoute(options: DeskRouteOptions): Route {
  const { handover, authorOf, attachments, conversations } = options;
  return keyRoute({
    ...OF_OWNER,
    method: "POST",
    path: "/user/conversations/{uuid}/messages",
    summary: "Send a message as a person",
    description: "Free. Takes the conversation over if nobody has it.",
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: WRITE,
    responses: {
      201: {
        description: "The message", schema: Type.Object({ message: OperatorMessage }),
      },
      400: { description: "The conversation is full, or the body is not a JSON object" },
      404: NOT_FOUND,
      409: HELD,
    },
    handle: async ({ caller, uuid, body, http }) => {
      const { attachments: ids = [] } = body;
      const text = requiredText(body.message, ids.length > 0);
      const conversation = await conversations.get(uuid);
      assertOwned(conversation, caller);
      const { message, isRepeat } = await handover.say({
        accountId: caller.accountId, uuid, author: await authorOf(caller), text,
        attachments: await attachments.named(conversation, ids),
        idempotencyKey: readIdempotencyKey(http.headers["idempotency-key"]),
      });
      return json(201, { message: messageItem(message) }, replayHeaders(isRepeat));
    },
  });
}

function endRoute({ handover, authorOf }: DeskRouteOptions): Route {
  return keyRoute({
    ...OF_OWNER,
    method: "POST",
    path: "/user/conversations/{uuid}/end",
    summary: "End a conversation",
    description: "The next message reopens it, and the assistant answers.",
    responses: {
      200: {
        description: "The conversation has ended",
        schema: Type.Object({ desk: DeskState }, about("Who answers if it is reopened.")),
      },
      404: NOT_FOUND,
    },
    handle: async ({ caller, uuid }) => {
      await handover.end({ accountId: caller.accountId, uuid, author: await authorOf(caller) });
      return json(200, { desk: "assistant" });
    },
  });
}

function assignRoute({ handover, authorOf, findAuthor }: DeskRouteOptions): Route {
  return keyRoute({
    ...OF_OWNER,
    method: "POST",
    path: "/user/conversations/{uuid}/assign",
    summary: "Assign a conversation to a person, whoever has it",
    body: Type.Object({
      to: Type.String({ maxLength: 64, ...about("The author `id` of the person to assign it to.",
        "key:3") }),
    }),
    responses: { 200: { description: "Who has the conversation",
      schema: DeskSchema }, 404: NOT_FOUND },
    handle: async ({ caller, uuid, body }) => {
      const to = await findAuthor(caller.accountId, body.to);
      if (!to) throw fieldFault("to", "The selected to is invalid.");
      const place = { accountId: caller.accountId, uuid, author: await authorOf(caller) };
      return json(200, deskItem(await handover.assign(place, to)));
    },
  });
}

const TYPING = Type.Object({
  typing: Type.Boolean(about("True while typing; false when done.")),
});
const NOTED = Type.Object({ status: Type.Literal(true, about("Always true.")) });

/** Each side shows the other that it is typing: sent to watchers, not stored. */
function typingRoutes({ handover, conversations, access, authorOf }: DeskRouteOptions): Route[] {
  const summary = "Show or clear the typing indicator";
  const description = "Sends `typing_started` or `typing_ended` to everyone watching the "
    + "conversation; nothing is stored. Repeat it while typing goes on, because the indicator "
    + "times out.";
  return [
    keyRoute({
      ...OF_OWNER,
      method: "POST",
      path: "/user/conversations/{uuid}/typing",
      summary,
      description,
      body: TYPING,
      responses: { 200: { description: "The indicator was sent", schema: NOTED }, 404: NOT_FOUND },
      handle: async ({ caller, uuid, body }) => {
        const author = await authorOf(caller);
        await handover.typing({ accountId: caller.accountId, uuid, author }, body.typing);
        return json(200, { status: true });
      },
    }),
    publicRoute({
      ...OF_VISITOR,
      method: "POST",
      path: "/conversations/{uuid}/typing",
      summary,
      description,
      body: TYPING,
      responses: {
        200: { description: "The indicator was sent", schema: NOTED }, 404: NOT_FOUND,
        429: { description: "Too many requests" },
      },
      handle: async ({ uuid, body }) => {
        const { accountId } = await conversations.get(uuid);
        access.assertMayType(uuid);
        await handover.typing({ accountId, uuid, author: null }, body.typing);
        return json(200, { status: true });
      },
    }),
  ];
}

function visitorAskRoute(options: DeskRouteOptions): Route {
  const { handover, conversations, findAssistant, access, system } = options;
  return publicRoute({
    ...OF_VISITOR,
    method: "POST",
    path: "/conversations/{uuid}/request-human",
    summary: "Request a person, if the assistant allows it",
    responses: {
      200: {
        description: "Who has the conversation",
        schema: Type.Object({
          status: Type.Literal(true, about("Always true.")), desk: DeskState,
          away: AwaySchema,
        }),
      },
      403: { description: "The assistant does not allow it, or this page's origin may not use the "
        + "assistant" },
      404: NOT_FOUND,
      429: { description: "Too many requests" },
    },
    handle: async ({ uuid }) => {
      const { accountId, assistantId } = await conversations.get(uuid);
      await access.assertMaySend(uuid);
      const assistant = await findAssistant(assistantId);
      if (assistant?.settings.desk.visitor_may_ask !== true) {
        throw new Fault(403, "This assistant does not hand conversations to people.");
      }
      const away = awayOf(assistant, system.now());
      const { state } = await handover.ask(
        { accountId, uuid, by: { role: "visitor" }, reason: "asked", note: null, away });
      return json(200, { status: true, desk: state, away: state === "waiting" ? away : null });
    },
  });
}
