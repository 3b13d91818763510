// Answering one turn of a call: the engine that answers text turns, over what was said so far, its
// text going to the media thread as it comes. Called by calling.ts.
import type { Assistant } from "../assistants/assistants.ts";
import type { Warning } from "../assistants/warnings.ts";
import { personaOf } from "../conversations/answering.ts";
import { joinTools, type ToolSource, type TurnContext } from "../conversations/tool-box.ts";
import { Fault } from "../core/faults.ts";
import { LIMITS } from "../core/limits.ts";
import type { Logger } from "../core/logger.ts";
import type { System } from "../core/system.ts";
import { wholeStart } from "../core/values.ts";
import type { HistoryMessage } from "../engine/history.ts";
import { allVariables, buildMessages } from "../engine/prompt.ts";
import { fillTemplate } from "../engine/template.ts";
import type { ToolBox } from "../engine/tools.ts";
import { parseArguments, runTurn, type TurnEvent } from "../engine/turn.ts";
import type { FunctionCall } from "../events/events.ts";
import type { RouteInbound } from "../phone-numbers/inbound.ts";
import type { LanguageModel } from "../providers/models/port.ts";
import type { Pcm } from "../providers/speech/port.ts";
import type { Calls } from "./calls.ts";
import type { Evaluation } from "./evaluation.ts";
import { callFunctions, type CallDeeds } from "./functions.ts";
import type { Hosted } from "./hosted.ts";
import type { Recordings } from "./recordings.ts";
import type { Call, EndReason, Hearing, TranscriptEntry } from "./records.ts";
import type { CallSetup, EngineCodes, FromMedia, MediaThread } from "./voice/protocol.ts";
import type { Said, VoiceState } from "./voice/brain.ts";
import type { VoiceSettings } from "./voice/settings.ts";

/** The far end of a call whose socket is in the main thread. */
export interface Face {
  frame(pcm: Pcm): void;
  clear(): void;
  /** The end of something that was said. */
  mark(): void;
  transcript(speaker: Said["speaker"], text: string, isFinal: boolean): void;
  state(state: VoiceState): void;
  tool(name: string, phase: "start" | "end"): void;
  over(reason: EndReason): void;
  /** Null: no telephone is behind it. */
  line: { dtmf(digits: string): void; transfer(to: string): void } | null;
}

/** The way out to a telephone; `to` is spelt as the carrier wants it. */
export type Line =
  | { carrier: "loopback" }
  /** Over the operator's account at a hosted carrier. */
  | { carrier: "hosted"; hosted: Hosted }
  | { carrier: "sip"; trunkId: number; to: string };

/** How an assistant hears and speaks. */
export interface ChosenVoice {
  settings: VoiceSettings;
  engines: EngineCodes;
  hearing: Hearing;
  /** The model hears by itself; null: a recogniser does. */
  realtime: { voice: string | null; language: string } | null;
}

/** How the far end can tell its words where this server understands none; a script always does. */
export type GivenWords = Extract<Hearing, "browser" | "typed" | "script">;

/**
 * Throws Fault 422 when nothing can speak or understand the assistant's language. `isRealtime`: as
 * the call is already; unless told, as the assistant's mode says and this server can. `words`: what
 * the far end offers; null: sound alone.
 */
export type VoiceOf = (
  assistant: Assistant,
  call: { isOutbound: boolean; isRealtime?: boolean; words: GivenWords | null },
) => ChosenVoice;

export interface CallingOptions {
  calls: Calls;
  media: MediaThread;
  voiceOf: VoiceOf;
  findAssistant(accountId: number, assistantId: number): Assistant | null;
  resolveModel(assistant: Assistant): LanguageModel;
  /** What of the assistant does not act on this server. */
  warningsOf(assistant: Assistant): readonly Warning[];
  /** Functions of the assistant apart from those of the call itself. */
  sourcesOf(context: TurnContext): ToolSource[];
  referenceFor(assistant: Assistant, question: string): Promise<string | null>;
  /** What an assistant's inbound webhook says about a caller; never rejects. */
  askInbound(facts: {
    url: string; accountId: number; assistantId: number; callId: number;
    customerPhone: string | null; assistantPhone: string | null; variables: Record<string, string>;
  }): Promise<Record<string, string>>;
  /** A sentence: why there is no way out for the number the call is made from. */
  lineOf(call: Call, assistant: Assistant): Line | string;
  routeInbound: RouteInbound;
  evaluate(assistant: Assistant, entries: TranscriptEntry[]): Promise<Evaluation>;
  recordings: Pick<Recordings, "folder" | "repair">;
  system: System;
  log: Logger;
  limits: { turnTotalMs: number; replyTokensMax: number; historyTokensMax: number };
}

/** Somebody who listens in. */
export interface Listener {
  /** Both sides mixed, frame by frame. */
  hear(pcm: Pcm, rate: number): void;
  over(): void;
}

/** What the main thread knows of a call while it lasts. */
export interface LiveCall {
  id: number;
  assistant: Assistant;
  accountId: number;
  variables: Record<string, string>;
  given: Record<string, string>;
  face: Face | null;
  /** There is a telephone line: calls can be handed on and keys be pressed. */
  hasLine: boolean;
  /** The operator's, or nobody's: not a trunk that an account brings along. */
  isOwnLine: boolean;
  isRealtime: boolean;
  hearing: Hearing;
  warnings: readonly Warning[];
  words: GivenWords | null;
  rate: number;
  isAnswered: boolean;
  history: HistoryMessage[];
  turn: { number: number; abort: AbortController } | null;
  /** Of turns whose words are not on record yet. */
  functionCalls: Map<number, FunctionCall[]>;
  recordingFile: string | null;
  /** When the last entry of the transcript ended. */
  saidMs: number;
  listeners: Set<Listener>;
  isOver: boolean;
  /** Replies of the model that came, and what the newest failure said. */
  replies: { given: number; failure: string | null };
  done: PromiseWithResolvers<void>;
}

/** Why a reply was broken off that nobody waits for any more. */
export const UNWANTED = new Error("the reply is not wanted");
const REALTIME_SILENCE_MS = 500;
const REALTIME_THRESHOLD = 0.5;
const REENGAGE = "Ask briefly whether they are still there.";

/** Words of one speaker in a row are one message to the model, with what functions said before. */
export function remember(
  history: HistoryMessage[], role: "user" | "assistant", text: string,
  functionCalls: FunctionCall[] = [],
): void {
  const last = history.at(-1);
  if (last?.role === role) {
    last.content = `${last.content} ${text}`.trim();
    last.functionCalls.push(...functionCalls);
  } else history.push({ role, content: text, functionCalls: [...functionCalls] });
  if (history.length > LIMITS.historyMessagesMax) history.shift();
}

/** Answers one turn; `question` is null when the customer has been silent. */
export async function reply(
  options: CallingOptions, call: LiveCall, number: number, question: string | null,
): Promise<void> {
  const { media, system, limits, log } = options;
  const { assistant } = call;
  const abort = new AbortController();
  call.turn = { number, abort };
  const deadline = system.after(limits.turnTotalMs, () =>
    abort.abort(new Error("the reply took too long")));
  let failed = false;
  try {
    const history = [...call.history];
    if (question === null) {
      const prompt = assistant.settings.reengagement_prompt ?? REENGAGE;
      const content = `[The customer has been silent. ${prompt}]`;
      history.push({ role: "user", content, functionCalls: [] });
    }
    const turn = runTurn({
      model: options.resolveModel(assistant),
      tools: toolsOf(options, call, number),
      messages: buildMessages({
        persona: personaOf(assistant),
        variables: call.variables,
        historyNewestFirst: history.reverse(),
        reference: question === null ? null : await options.referenceFor(assistant, question),
        historyTokensMax: limits.historyTokensMax,
      }),
      temperature: Number(assistant.settings.llm_temperature),
      tokensMax: limits.replyTokensMax,
      signal: abort.signal,
    });
    for await (const events of turn) {
      for (const event of events) show(options, call, number, event);
    }
    call.replies.given += 1;
  } catch (error) {
    failed = abort.signal.reason !== UNWANTED;
    if (failed) call.replies.failure = error instanceof Error ? error.message : String(error);
    if (failed) log.warn({ err: error, call_id: call.id }, "reply failed");
  } finally {
    deadline.cancel();
  }
  if (!call.isOver) media.send({ kind: "reply_end", callId: call.id, turn: number, failed });
}

function toolsOf(options: CallingOptions, call: LiveCall, turn: number): ToolBox {
  const { id, assistant, variables } = call;
  const sources = options.sourcesOf({
    assistant, scope: `call:${id}.${turn}`, variables, endConversation: () => undefined,
  });
  return joinTools([callFunctions(assistant, deedsOf(options, call)), ...sources]);
}

/** A function called by a model that speaks by itself. */
export async function answerToolCall(
  options: CallingOptions, call: LiveCall, message: Extract<FromMedia, { kind: "tool_call" }>,
): Promise<void> {
  const { turn, toolCallId, name, argumentsJson } = message;
  const given = parseArguments(argumentsJson);
  call.face?.tool(name, "start");
  const result = given === null
    ? { error: "The arguments are not a JSON object." }
    : await toolsOf(options, call, turn).call(
        { callId: toolCallId, name, arguments: given }, new AbortController().signal);
  const made = { name, arguments: given ?? {}, result };
  call.functionCalls.set(turn, [...call.functionCalls.get(turn) ?? [], made]);
  call.face?.tool(name, "end");
  const json = wholeStart(JSON.stringify(result), LIMITS.toolResultCharsMax);
  options.media.send({ kind: "tool_result", callId: call.id, toolCallId, json });
}

/** What a model that hears by itself is told before the call. */
export function realtimeOf(
  options: CallingOptions, call: LiveCall, chosen: NonNullable<ChosenVoice["realtime"]>,
): NonNullable<CallSetup["realtime"]> {
  const { settings } = call.assistant;
  return {
    ...chosen,
    instructions: instructionsOf(call),
    tools: toolsOf(options, call, 0).tools,
    temperature: Number(settings.llm_temperature),
    silenceMs: REALTIME_SILENCE_MS,
    threshold: settings.turn_detection_threshold ?? REALTIME_THRESHOLD,
  };
}

const instructionsOf = ({ assistant, variables }: LiveCall): string =>
  fillTemplate(assistant.settings.system_prompt, variables);

function show(
  { media }: CallingOptions, call: LiveCall, turn: number, event: TurnEvent,
): void {
  const callId = call.id;
  switch (event.kind) {
    case "text":
      return media.send({ kind: "reply_text", callId, turn, text: event.text });
    case "function_call_start":
      media.send({ kind: "tool", callId, running: true });
      return call.face?.tool(event.name, "start");
    case "function_call_end":
      call.functionCalls.set(turn, [...call.functionCalls.get(turn) ?? [], event.call]);
      media.send({ kind: "tool", callId, running: false });
      return call.face?.tool(event.call.name, "end");
    case "usage":
    case "truncated":
      return;
  }
}

function chosenOrWhyNot(
  { voiceOf }: CallingOptions, assistant: Assistant, { isRealtime, words }: LiveCall,
): ChosenVoice | string {
  try {
    return voiceOf(assistant, { isOutbound: false, isRealtime, words });
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
}

function deedsOf(options: CallingOptions, call: LiveCall): CallDeeds {
  const { media } = options;
  const callId = call.id;
  return {
    hangUp: () => media.send({
      kind: "end_after_speech", callId, reason: "assistant_ended", to: null,
    }),
    transfer: call.hasLine
      ? (to) => {
          // Whoever talks to the model may have had it choose the number.
          const barred = options.calls.whyBarred(to);
          if (barred !== null) return barred;
          media.send({ kind: "end_after_speech", callId, reason: "transferred", to });
          return null;
        }
      : null,
    sendDtmf: call.hasLine ? (digits) => media.send({ kind: "send_dtmf", callId, digits }) : null,
    handOver: (assistantId, { message, greets }) => {
      const next = options.findAssistant(call.accountId, assistantId);
      if (!next) return "That assistant is not there any more.";
      const { isRealtime } = call;
      const chosen = chosenOrWhyNot(options, next, call);
      if (typeof chosen === "string") return chosen;
      const { settings, engines } = chosen;
      call.assistant = next;
      call.variables = allVariables(personaOf(next), call.given, options.system.now(), {
        customerPhone: call.variables.customer_phone ?? "",
        assistantPhone: call.variables.assistant_phone ?? "",
      });
      if (message !== "") media.send({ kind: "say", callId, text: message });
      const greeting = greets ? fillTemplate(next.settings.initial_message, call.variables) : "";
      media.send({
        kind: "become", callId, settings, greeting, engines, instructions: instructionsOf(call),
        tools: isRealtime ? toolsOf(options, call, 0).tools : [],
      });
      return null;
    },
  };
}
