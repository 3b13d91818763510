// Answering one turn of a call: the engine that answers text turns, over what was said so far, its
// text going to the media thread as it comes. Called by calling.ts.
import type { Assistant } from "../assistants/assistants.ts";
import type { Warning } from "../assistants/warnings.ts";
import { personaOf } from "../conversations/answering.ts";
import { joinTools, type ToolSource, type TurnContext } from "../conversations/tool-box.ts";
import { Fault } from "../core/faults.ts";
import { LIMITS } from "../core/limits.ts";
import type { Logger } from "../core/logger.ts";
import type { Micros } from "../core/money.ts";
import type { CarrierLeg } from "../core/price-lists.ts";
import type { System } from "../core/system.ts";
import { wholeStart } from "../core/values.ts";
import type { HistoryMessage } from "../engine/history.ts";
import { allVariables, buildMessages, languageNote, type Languages } from "../engine/prompt.ts";
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
import { languageAfter, type SpokenLanguage } from "./languages.ts";
import type { Recordings } from "./recordings.ts";
import type { Call, EndReason, Hearing, TranscriptEntry } from "./records.ts";
import type { Transfer } from "./transfers.ts";
import type { CallSetup, EngineCodes, FromMedia, MediaThread } from "./voice/protocol.ts";
import type { Said, VoiceState } from "./voice/brain.ts";
import { silenceNote, type VoiceSettings } from "./voice/settings.ts";

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
  /** English name of the language spoken. */
  language: string;
  engines: EngineCodes;
  hearing: Hearing;
  /** The model hears by itself; null: a recogniser does. */
  realtime: { voice: string | null; language: string; model: string | null } | null;
}

/** How the far end can tell its words where this server understands none; a script always does. */
export type GivenWords = Extract<Hearing, "browser" | "typed" | "script">;

/**
 * Throws Fault 422 when nothing can speak or understand the assistant's language. `isRealtime`: as
 * the call is already; unless told, as the assistant's mode says and this server can. `language`:
 * `iso_2` of the one spoken now; unless told, the assistant's. `words`: what the far end offers;
 * null: sound alone.
 */
export type VoiceOf = (
  assistant: Assistant,
  call: {
    isOutbound: boolean; isRealtime?: boolean; language?: string; words: GivenWords | null;
  },
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
  languagesOf(assistant: Assistant): Languages;
  /** What an assistant's inbound webhook says about a caller; never rejects. */
  askInbound(facts: {
    url: string; accountId: number; assistantId: number; callId: number;
    customerPhone: string | null; assistantPhone: string | null; variables: Record<string, string>;
  }): Promise<Record<string, string>>;
  /** A sentence: why there is no way out for the number the call is made from. */
  lineOf(call: Call, assistant: Assistant): Line | string;
  routeInbound: RouteInbound;
  /** What the carrier charges for a minute; 0: not known. */
  carrierRateOf(leg: CarrierLeg): Micros;
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
  isOutbound: boolean;
  /** There is a telephone line: calls can be handed on and keys be pressed. */
  hasLine: boolean;
  carrierMicrosPerMinute: Micros;
  /** The operator's, or nobody's: not a trunk that an account brings along. */
  isOwnLine: boolean;
  isRealtime: boolean;
  hearing: Hearing;
  warnings: readonly Warning[];
  words: GivenWords | null;
  spoken: SpokenLanguage;
  /** The English name of the one spoken now, and the codes of all the call may change into. */
  language: { name: string; among: string[] };
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
  options: CallingOptions, call: LiveCall, number: number,
  { question, told }: { question: string | null; told: string | null },
): Promise<void> {
  const { media, system, limits, log } = options;
  const { assistant } = call;
  const abort = new AbortController();
  call.turn = { number, abort };
  const deadline = system.after(limits.turnTotalMs, () =>
    abort.abort(new Error("the reply took too long")));
  let failed = false;
  try {
    if (question !== null) await followLanguage(options, call, { text: question, told });
    const history = [...call.history];
    if (question === null) {
      const prompt = assistant.settings.reengagement_prompt ?? REENGAGE;
      history.push({ role: "user", content: silenceNote(prompt), functionCalls: [] });
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
        languages: languagesOf(options, call),
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
    instructions: instructionsOf(options, call),
    tools: toolsOf(options, call, 0).tools,
    temperature: Number(settings.llm_temperature),
    silenceMs: REALTIME_SILENCE_MS,
    threshold: settings.turn_detection_threshold ?? REALTIME_THRESHOLD,
  };
}

const languagesOf = (options: CallingOptions, { assistant, language }: LiveCall): Languages =>
  ({ ...options.languagesOf(assistant), current: language.name });

function instructionsOf(options: CallingOptions, call: LiveCall): string {
  const { settings } = call.assistant;
  const prompt = fillTemplate(settings.system_prompt, call.variables);
  const feeling = settings.tts_emotion_enabled && call.assistant.mode === "multimodal"
    ? "\n\nSpeak with the feeling that what is said calls for, never exaggerated."
    : "";
  return `${prompt}\n\n${languageNote(languagesOf(options, call))}${feeling}`;
}

/** Recogniser, voice, fixed sentences and prompt change into the language the customer speaks. */
export async function followLanguage(
  options: CallingOptions, call: LiveCall, turn: { text: string; told: string | null },
): Promise<void> {
  const { among } = call.language;
  if (among.length < 2) return;
  const before = call.spoken.current;
  call.spoken = await languageAfter(call.spoken, turn, among);
  const { current } = call.spoken;
  if (current === before || call.isOver) return;
  const chosen = chosenOrWhyNot(options, call, call.assistant, current);
  if (typeof chosen === "string") {
    call.spoken = { current: before, doubt: null };
    return options.log.warn({ call_id: call.id, why: chosen }, "a language could not be followed");
  }
  become(options, call, chosen, "");
}

/** The call goes on with this voice, under the instructions of its assistant. */
function become(
  options: CallingOptions, call: LiveCall, chosen: ChosenVoice, greeting: string,
): void {
  const { settings, engines, language } = chosen;
  call.spoken = { current: settings.language, doubt: null };
  call.language = { name: language, among: settings.languages };
  options.media.send({
    kind: "become", callId: call.id, settings, greeting, engines,
    instructions: instructionsOf(options, call),
    tools: call.isRealtime ? toolsOf(options, call, 0).tools : [],
  });
}

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
  { voiceOf }: CallingOptions, call: LiveCall, assistant: Assistant, language: string,
): ChosenVoice | string {
  const { isRealtime, isOutbound } = call;
  // A page that sends sound is not told to give words in the middle of the call.
  const words = call.hearing === "server" ? null : call.words;
  try {
    return voiceOf(assistant, { isOutbound, isRealtime, language, words });
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
}

/** On record before the call goes on: writes are committed in the order they are asked for. */
function noteTransfer(
  { calls, log }: CallingOptions, { id }: LiveCall,
  transfer: Pick<Transfer, "type" | "to" | "assistantUuid" | "status">, failureReason: string | null,
): void {
  const status = failureReason === null ? transfer.status : "failed";
  calls.addTransfer(id, { ...transfer, status, failureReason }).catch((error: unknown) =>
    log.error({ err: error, call_id: id }, "a transfer could not be noted"));
}

function deedsOf(options: CallingOptions, call: LiveCall): CallDeeds {
  const { media } = options;
  const callId = call.id;
  return {
    hangUp: () => media.send({
      kind: "end_after_speech", callId, reason: "assistant_ended", to: null,
    }),
    transfer: call.hasLine
      ? (to, type) => {
          // Whoever talks to the model may have had it choose the number.
          const barred = options.calls.whyBarred(to);
          const status = "in-progress";
          noteTransfer(options, call, { type, to, assistantUuid: null, status }, barred);
          if (barred !== null) return barred;
          media.send({ kind: "end_after_speech", callId, reason: "transferred", to });
          return null;
        }
      : null,
    sendDtmf: call.hasLine ? (digits) => media.send({ kind: "send_dtmf", callId, digits }) : null,
    handOver: (assistantId, { message, greets }) => {
      const next = options.findAssistant(call.accountId, assistantId);
      const chosen = next
        ? chosenOrWhyNot(options, call, next, call.spoken.current)
        : "That assistant is not there any more.";
      const why = typeof chosen === "string" ? chosen : null;
      noteTransfer(options, call, {
        type: "assistant_transfer", to: next?.name ?? `assistant ${assistantId}`,
        assistantUuid: next?.uuid ?? null, status: "completed",
      }, why);
      if (!next || typeof chosen === "string") return why;
      call.assistant = next;
      call.variables = allVariables(personaOf(next), call.given, options.system.now(), {
        customerPhone: call.variables.customer_phone ?? "",
        assistantPhone: call.variables.assistant_phone ?? "",
      });
      if (message !== "") media.send({ kind: "say", callId, text: message });
      const greeting = greets ? fillTemplate(next.settings.initial_message, call.variables) : "";
      become(options, call, chosen, greeting);
      return null;
    },
  };
}
