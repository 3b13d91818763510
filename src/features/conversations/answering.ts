// Answers one turn that has begun: runs the engine, shows its text to whoever watches, stores
// how it ended. Called by conversations.ts, which owns the order of turns.
import type { Assistant } from "#features/assistants/assistants.ts";
import { personaOf, type TurnContext } from "#features/assistants/turn-context.ts";
import { ProviderError, StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { Micros } from "#core/money.ts";
import type { System } from "#core/system.ts";
import type { TurnFunctions } from "#engine/functions.ts";
import type { HistoryMessage } from "#engine/history.ts";
import { allVariables, buildMessages, type Languages } from "#engine/prompt.ts";
import { runTurn, type TurnEvent } from "#engine/turn.ts";
import type { EventBus } from "#events/bus.ts";
import type { FailureClass } from "#events/events.ts";
import type { LanguageModel } from "#providers/models/port.ts";
import type { LiveReply } from "./live-reply.ts";
import type {
  Conversation, ConversationStore, FailureCause, Given, TurnResult,
} from "./records.ts";

export interface AnswerOptions {
  store: ConversationStore;
  /** Null when it is deleted. */
  findAssistant(assistantId: number): Assistant | null;
  resolveModel(assistant: Assistant): LanguageModel;
  functionsOf(context: TurnContext): TurnFunctions;
  /** What of the assistant's knowledgebase belongs beside the question; null: nothing. */
  referenceFor(assistant: Assistant, question: string): Promise<string | null>;
  languagesOf(assistant: Assistant): Languages;
  bus: EventBus;
  system: System;
  log: Logger;
  limits: {
    turnTotalMs: number;
    replyTokensMax: number;
    historyTokensMax: number;
    /** Price of an answered message; 0: none is billed. */
    messagePriceMicros: Micros;
    /** For assistants without a cap of their own; null: none. */
    dailyCapMicros: Micros | null;
  };
  /** For metrics: one call per finished turn. */
  observe(outcome: TurnResult, seconds: number, firstTextSeconds: number | null): void;
}

export interface BegunTurn {
  assistant: Assistant;
  conversation: Conversation;
  /** Null: the model reads what is stored. */
  given: Given | null;
  live: LiveReply;
}

/** Why a turn was aborted when the process had to stop before it was complete. */
export class Interrupted extends Error {
  constructor() {
    super("The server was restarted before the reply was complete.");
  }
}

const PROCESS_FAILURE = "Failed to process message: ";

/** A client's messages tell nothing of functions. */
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

/** Never rejects: every end of a turn is a result, and every result is stored before it is told. */
export async function answer(
  options: AnswerOptions, { assistant, conversation, given, live }: BegunTurn,
): Promise<TurnResult> {
  const { store, system, limits } = options;
  const startedMs = system.monotonicMs();
  let firstTextMs: number | null = null;
  const deadline = system.after(limits.turnTotalMs, () =>
    live.abort.abort(new Error("the reply took too long")));
  let failure: unknown = null;
  const context: TurnContext = {
    assistant,
    scope: `turn:${live.turnId}`,
    variables: allVariables(personaOf(assistant), conversation.variables, system.now()),
    endConversation: () => (live.endsConversation = true),
  };
  try {
    const history = given?.messages.map(asHistory).reverse()
      ?? store.recent(conversation.id, LIMITS.historyMessagesMax);
    const turn = runTurn({
      model: options.resolveModel(assistant),
      functions: options.functionsOf(context),
      messages: buildMessages({
        persona: personaOf(assistant),
        variables: context.variables,
        instructions: given?.system ?? "",
        historyNewestFirst: history,
        reference: await options.referenceFor(assistant, history[0]?.content ?? ""),
        historyTokensMax: limits.historyTokensMax,
        languages: options.languagesOf(assistant),
      }),
      temperature: given?.temperature ?? Number(assistant.settings.llm_temperature),
      tokensMax: Math.min(given?.tokensMax ?? Infinity, limits.replyTokensMax),
      signal: live.abort.signal,
    });
    for await (const events of turn) {
      firstTextMs ??= events.some((event) => event.kind === "text") ? system.monotonicMs() : null;
      for (const event of events) show(event, live);
    }
  } catch (error) {
    failure = error;
  }
  deadline.cancel();
  live.close();
  const result = await conclude(options, conversation, live, failure);
  const firstTextSeconds = firstTextMs === null ? null : (firstTextMs - startedMs) / 1000;
  options.observe(result, (system.monotonicMs() - startedMs) / 1000, firstTextSeconds);
  return result;
}

/** Stores how the turn ended, then tells everybody. */
async function conclude(
  options: AnswerOptions,
  conversation: Conversation,
  live: LiveReply,
  failure: unknown,
): Promise<TurnResult> {
  const { store, bus, system, log } = options;
  const common = { turnId: live.turnId, conversation };
  const result = resultOf(live, failure);
  if (result.kind === "failed" && result.reason === "failed") {
    log.warn({ err: failure, turn_id: live.turnId }, "reply failed");
  }
  try {
    const events = result.kind === "completed"
      ? await store.completeTurn({
          ...common, text: result.text, functionCalls: result.functionCalls,
          stopped: result.stopped, truncated: result.truncated, usage: result.usage,
          ends: live.endsConversation, now: system.now(),
        })
      : await store.failTurn({
          ...common, reason: result.reason, error: result.error, cause: result.cause,
          now: system.now(),
        });
    bus.publishCommitted(events);
    return result;
  } catch (error) {
    log.error({ err: error, turn_id: live.turnId }, "the end of a turn could not be stored");
    const text = error instanceof StorageFailure
      ? "The server cannot store anything at the moment."
      : "Server error.";
    live.failUnstored(text);
    return { kind: "failed", reason: "failed", error: text, cause: null };
  }
}

function resultOf(live: LiveReply, failure: unknown): TurnResult {
  const { functionCalls, truncated, usage } = live;
  if (live.stopped) {
    // What was shown is kept and paid for; a reply stopped before its first text costs nothing.
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
    return failed({ failure: "no_answer", error: "the model gave no answer" });
  }
  return { kind: "completed", text: live.text, functionCalls, stopped: false, truncated, usage };
}

/** What strangers read of each kind of failure: neither what answers here nor what it said. */
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
    : { failure: "internal_error", error: "an internal error, which the server's log tells more about" };
}
