// Answers one turn: runs the engine, shows its text to watchers once the turn has begun, and
// returns how it ended. Called by asking.ts; conversations.ts owns the order of turns and stores
// how they end.
import type { Assistant } from "#features/assistants/assistants.ts";
import { personaOf, type ResolveTurn, type TurnContext } from "#features/assistants/turn-context.ts";
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { Instant, System } from "#core/system.ts";
import { driveTurn, type TurnLimits, type TurnMaterial } from "#engine/drive.ts";
import { joinFunctions } from "#engine/functions.ts";
import type { HistoryMessage } from "#engine/history.ts";
import { allVariables } from "#engine/prompt.ts";
import type { TurnEvent } from "#engine/turn.ts";
import type { AttachmentBody, FailureClass } from "#events/events.ts";
import type { Attachments } from "#features/conversations/attachments.ts";
import { asModelReads, deskInstructions } from "#features/conversations/desk/context.ts";
import { endFunction, requestFunction } from "./functions.ts";
import type { LiveReply } from "./live-reply.ts";
import { awayOf } from "#features/conversations/desk/office-hours.ts";
import { saidOf, type Recent, type Said } from "./recent.ts";
import type { Conversation, FailureCause, Given, Message, TurnResult } from "#features/conversations/records.ts";

export interface AnswerOptions {
  recent: Recent;
  attachments: Pick<Attachments, "asModelSees">;
  resolveTurn: ResolveTurn;
  system: System;
  log: Logger;
  limits: TurnLimits;
}

interface Unstored {
  text: string;
  attachments: AttachmentBody[];
  at: Instant;
  /** How many messages the conversation has before this one. */
  messageCount: number;
}

export interface AskedTurn {
  assistant: Assistant;
  conversation: Conversation;
  /** Null: the model reads the stored messages. */
  given: Given | null;
  /** The user's message while it may not be stored yet; null: it is stored. */
  unstored: Unstored | null;
  abort: AbortController;
  /** Resolves when the turn has begun; rejects when it will not. */
  begun: Promise<LiveReply>;
}

export interface Answered {
  result: TurnResult;
  /** When the first text arrived, by the monotonic clock; null: there was none. */
  firstTextMs: number | null;
  /** The messages before the answer, if they are to be cached for the next turn. */
  said: Said | null;
}

/** Why a turn was aborted when the process had to stop before it was complete. */
export class Interrupted extends Error {
  constructor() {
    super("The server was restarted before the reply was complete.");
  }
}

const PROCESS_FAILURE = "Failed to process message: ";

/** Messages that a client sent contain no function calls. */
const asHistory = (message: Given["messages"][number]): HistoryMessage =>
  ({ ...message, functionCalls: [] });

function show(event: TurnEvent, live: LiveReply): void {
  switch (event.kind) {
    case "text":
      live.append(event.text);
      break;
    case "function_call_start": {
      const members = { call_id: event.callId, name: event.name, arguments: event.arguments };
      live.addCall({ type: event.kind, members });
      break;
    }
    case "function_call_end":
      live.functionCalls.push(event.call);
      live.addCall({ type: event.kind, members: { call_id: event.callId, ...event.call } });
      break;
    case "usage":
      live.addUsage(event.usage);
      break;
    case "truncated":
      live.truncated = true;
      break;
  }
}

const asMessage = ({ text, attachments, at }: Unstored): Message => ({
  role: "user", content: text, attachments, author: null, functionCalls: [], stopped: false,
  truncated: false, usage: null, rating: null, createdAt: at,
});

/** A turn always ends in a result; rejects only when the turn does not begin. */
export async function answer(options: AnswerOptions, turn: AskedTurn): Promise<Answered> {
  const { system, limits, log } = options;
  let firstTextMs: number | null = null;
  let failure: unknown = null;
  let begun: LiveReply | null = null;
  // Only `said` is held after `gather`, so that a long history can be freed once it is sent.
  const asked: { said: Said | null } = { said: null };
  const replyOf = (): LiveReply => {
    if (!begun) throw new Error("a function was called before its turn had begun");
    return begun;
  };
  const receiver = turn.begun.then((live) => {
    begun = live;
    return (event: TurnEvent): void => {
      if (event.kind === "text") firstTextMs ??= system.monotonicMs();
      show(event, live);
    };
  });
  // The turn may be refused before `receiver` is awaited.
  receiver.catch(() => undefined);
  try {
    await driveTurn({
      gather: async () => {
        const newestFirst = await saidIn(options, turn);
        asked.said = keptOf(turn, newestFirst);
        return gather(options, turn, replyOf, newestFirst);
      },
      receiver, abort: turn.abort, limits, system,
    });
  } catch (error) {
    failure = error;
  }
  await receiver;
  const live = replyOf();
  live.close();
  const result = resultOf(live, failure);
  if (result.kind === "failed" && result.reason === "failed") {
    log.warn({ err: failure, turn_id: live.turnId }, "reply failed");
  }
  return { result, firstTextMs, said: asked.said };
}

/** With a database over a socket, the write may be visible to a read that was issued before it. */
const isStored = ({ text, at }: Unstored, newest: Message | undefined): boolean =>
  newest?.role === "user" && newest.createdAt === at && newest.content === text;

/** The messages that the model may read, newest first, including the one to answer. */
async function saidIn(
  { recent }: AnswerOptions, { conversation, given, unstored }: AskedTurn,
): Promise<Message[]> {
  const stored = given ? [] : await recent.read(conversation.id, unstored?.messageCount ?? null);
  const isAsked = unstored === null || isStored(unstored, stored[0]);
  return isAsked ? stored : [asMessage(unstored), ...stored];
}

/** Null: not to be cached, as the client sent it, or the total number of messages is unknown. */
const keptOf = ({ unstored, given }: AskedTurn, newestFirst: Message[]): Said | null =>
  unstored && !given ? saidOf(newestFirst, unstored.messageCount + 1) : null;

async function gather(
  { attachments, resolveTurn, system }: AnswerOptions,
  { assistant, conversation, given }: AskedTurn,
  replyOf: () => LiveReply,
  said: Message[],
): Promise<TurnMaterial> {
  const persona = personaOf(assistant);
  const context: TurnContext = {
    assistant,
    get scope() {
      return `turn:${replyOf().turnId}`;
    },
    variables: allVariables(persona, conversation.variables, system.now()),
    endConversation: () => (replyOf().endsConversation = true),
  };
  const history = given?.messages.map(asHistory).reverse() ?? said.map(asModelReads);
  const desk = conversation.desk.state;
  const away = awayOf(assistant, system.now());
  const request = requestFunction(context, { desk, away }, (note) => {
    replyOf().asksForPerson = { by: "assistant", reason: "asked", note, away };
  });
  const { functions, ...resolved } = await resolveTurn(context, history[0]?.content ?? "");
  return {
    ...resolved,
    functions: joinFunctions([...functions, endFunction(context, desk), request]),
    persona,
    variables: context.variables,
    instructions: given?.system ?? deskInstructions(desk, said, away),
    historyNewestFirst: given
      ? history
      : withFiles(history, await attachments.asModelSees(said, resolved.model.sees ?? [])),
    temperature: given?.temperature ?? Number(assistant.settings.llm_temperature),
    tokensMax: given?.tokensMax ?? null,
  };
}

type Seen = Awaited<ReturnType<Attachments["asModelSees"]>>;

const withFiles = (history: HistoryMessage[], seen: Seen): HistoryMessage[] =>
  history.map((message, at) => {
    const { files = [], notes = [] } = seen[at] ?? {};
    if (files.length === 0 && notes.length === 0) return message;
    const content = [message.content, ...notes].filter((text) => text !== "").join("\n");
    return { ...message, content, files };
  });

function resultOf(live: LiveReply, failure: unknown): TurnResult {
  const { functionCalls, truncated, usage } = live;
  if (live.stopped) {
    // What was shown is stored and charged; a reply stopped before its first text is free.
    const text = live.slice(0, live.shown);
    return text === ""
      ? { kind: "failed", reason: "stopped", error: "The reply was stopped.", cause: null }
      : { kind: "completed", text, functionCalls, stopped: true, truncated: false, usage };
  }
  const reason: unknown = live.abort.signal.reason;
  if (reason instanceof Interrupted) {
    return { kind: "failed", reason: "interrupted", error: reason.message, cause: null };
  }
  if (failure !== null) return failed(causeOf(failure, reason));
  if (live.text.trim() === "") {
    return failed({ failure: "no_answer", error: truncated ? USED_UP : "the model gave no answer" });
  }
  return { kind: "completed", text: live.text, functionCalls, stopped: false, truncated, usage };
}

/** A reasoning model's thinking counts towards the token limit of its reply. */
const USED_UP = "the model reached its token limit before it answered; if it reasons first, raise"
  + " PARLEY_REPLY_TOKENS_MAX";

/** What strangers read for each class of failure: never the vendor, nor its message. */
const TOLD: Record<FailureClass, string> = {
  model_failed: "the assistant could not answer just now",
  timeout: "the assistant took too long to answer",
  no_answer: "the assistant gave no answer",
  internal_error: "the assistant could not answer just now",
};

const failed = (cause: FailureCause): TurnResult =>
  ({ kind: "failed", reason: "failed", error: PROCESS_FAILURE + TOLD[cause.failure], cause });

/** Adaptors word their errors for the owner; anything else stays in the log. */
function causeOf(failure: unknown, abortReason: unknown): FailureCause {
  if (abortReason instanceof Error) return { failure: "timeout", error: abortReason.message };
  return failure instanceof ProviderError
    ? { failure: "model_failed", error: failure.message }
    : { failure: "internal_error", error: "an internal error, explained in the server's log" };
}
