// Answers one turn of a call: runs the engine that answers text turns on what was said so far, and
// sends its text to the media thread as it comes. Called by from-media.ts.
import type { Assistant } from "#features/assistants/assistants.ts";
import { personaOf, type TurnContext } from "#features/assistants/turn-context.ts";
import { LIMITS } from "#core/limits.ts";
import { wholeStart } from "#core/values.ts";
import { driveTurn, type TurnMaterial } from "#engine/drive.ts";
import { joinFunctions, NO_FUNCTIONS, type TurnFunctions } from "#engine/functions.ts";
import { allVariables, languageNote, type Languages } from "#engine/prompt.ts";
import { fillTemplate } from "#engine/template.ts";
import { parseArguments, type TurnEvent } from "#engine/turn.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import { createEarly, type Early } from "./early-reply.ts";
import { callFunctions, type CallActions } from "./functions.ts";
import { COLLEAGUES, SPEAK_UP } from "./colleagues.ts";
import { languageAfter } from "./languages.ts";
import { ASSISTANT_GONE, type Transfer } from "./records/transfers.ts";
import { remember } from "./history.ts";
import { beginWarm } from "./warm.ts";
import type { CallSetup, FromMedia } from "./voice/protocol.ts";
import { silenceNote } from "./voice/settings.ts";
import type { SpeakUp } from "./voice/turns/taking-part.ts";
import { callNow, type CallingOptions, type LiveCall } from "./live-call.ts";
import type { ChosenVoice } from "./voice-choice.ts";

/** The reason a reply is aborted with when it is no longer wanted. */
export const UNWANTED = new Error("the reply is not wanted");
const REALTIME_SILENCE_MS = 500;
const REALTIME_THRESHOLD = 0.5;
const REENGAGE = "Ask briefly whether they are still there.";

interface Question {
  question: string | null;
  /** Why the model is asked when there is no question. */
  unasked?: SpeakUp | "silence";
  detected: string | null;
  /** The part of the question that is not in the history, while it may go on; null: it is over. */
  ahead: string | null;
}

/** Answers one turn; `question` is null when the customer has been silent. */
export async function reply(
  options: CallingOptions, call: LiveCall, number: number,
  { question, detected, ahead, unasked = "silence" }: Question,
): Promise<void> {
  const { media, system, limits, log } = options;
  const abort = new AbortController();
  const early = ahead === null ? null : createEarly(abort.signal);
  call.turn = { number, abort, goAhead: early?.goAhead ?? (() => undefined) };
  // The outcome of a reply that is never heard counts neither for the call nor for its charge.
  const note = (failure: string | null): void => {
    const count = (): void => {
      if (failure === null) call.replies.given += 1;
      else call.replies.failure = failure;
    };
    if (early) early.whenHeard(count);
    else count();
  };
  let failed = false;
  try {
    await driveTurn({
      gather: async () => {
        if (question !== null) await followLanguage(options, call, { text: question, detected });
        return gather(options, call, number, { question, ahead, early, unasked });
      },
      receiver: (event) => {
        early?.count(event);
        if (early && event.kind === "function_call_start") {
          return early.whenHeard(() => show(options, call, number, event));
        }
        show(options, call, number, event);
      },
      abort, limits, system,
    });
    note(null);
  } catch (error) {
    failed = abort.signal.reason !== UNWANTED;
    if (failed) {
      note(error instanceof Error ? error.message : String(error));
      log.warn({ err: error, call_id: call.id }, "reply failed");
    }
  }
  early?.onSettled((outcome, tokens) => options.observeEager(outcome, tokens));
  if (!call.isOver) media.send({ kind: "reply_end", callId: call.id, turn: number, failed });
}

/** Answers something other than words of the customer. */
export async function replyTo(
  options: CallingOptions, call: LiveCall, turn: number, unasked: SpeakUp | "silence",
): Promise<void> {
  if (!call.isRealtime || unasked === "silence") {
    return reply(options, call, turn, { question: null, detected: null, ahead: null, unasked });
  }
  const text = [COLLEAGUES, ...call.untold, SPEAK_UP[unasked]].join("\n");
  call.untold = [];
  options.media.send({ kind: "tell", callId: call.id, text });
}

function unaskedNote({ assistant }: LiveCall, unasked: SpeakUp | "silence"): string {
  if (unasked !== "silence") return SPEAK_UP[unasked];
  return silenceNote(assistant.settings.reengagement_prompt ?? REENGAGE);
}

async function gather(
  options: CallingOptions, call: LiveCall, turn: number,
  { question, ahead, early, unasked = "silence" }: Omit<Question, "detected"> & { early: Early | null },
): Promise<TurnMaterial> {
  const { assistant, variables } = call;
  const history = [...call.history];
  // Added to a copy: it goes on record only once the customer's turn is over.
  if (ahead !== null && ahead !== "") {
    const last = history.pop();
    if (last) history.push({ ...last, functionCalls: [...last.functionCalls] });
    remember(history, "user", ahead);
  }
  if (question === null) {
    history.push({ role: "user", content: unaskedNote(call, unasked), functionCalls: [] });
  }
  const { functions, languages, ...resolved } = await options.resolveTurn(
    contextOf(call, turn), question);
  const all = joinFunctions([callFunctions(assistant, actionsOf(options, call)), ...functions]);
  return {
    ...resolved,
    functions: early ? early.holdBack(all) : all,
    persona: personaOf(assistant),
    variables,
    ...(call.hasColleagues ? { instructions: COLLEAGUES } : {}),
    historyNewestFirst: history.reverse(),
    languages: { ...languages, current: call.language.name },
    temperature: Number(assistant.settings.llm_temperature),
    tokensMax: null,
  };
}

const contextOf = ({ id, assistant, variables }: LiveCall, turn: number): TurnContext =>
  ({ assistant, scope: `call:${id}.${turn}`, variables, endConversation: () => undefined });

/** The functions of a model that speaks by itself, resolved once per turn. */
function functionsOf(
  options: CallingOptions, call: LiveCall, turn: number,
): Promise<TurnFunctions> {
  const { assistant, resolved } = call;
  // Another assistant may have taken over in the middle of the turn.
  if (resolved?.turn === turn && resolved.assistant === assistant) return resolved.functions;
  const functions = options.sourcesOf(contextOf(call, turn)).then((sources) =>
    joinFunctions([callFunctions(assistant, actionsOf(options, call)), ...sources]));
  call.resolved = { turn, assistant, functions };
  return functions;
}

/** Runs a function for a model that speaks by itself. */
export async function answerFunctionCall(
  options: CallingOptions, call: LiveCall, message: Extract<FromMedia, { kind: "function_call" }>,
): Promise<void> {
  const { turn, functionCallId, name, argumentsJson } = message;
  const given = parseArguments(argumentsJson);
  call.face?.functionCall(name, "start");
  const result = given === null
    ? { error: "The arguments are not a JSON object." }
    : await (await functionsOf(options, call, turn)).call(
        { callId: functionCallId, name, arguments: given }, new AbortController().signal);
  const made = { name, arguments: given ?? {}, result };
  call.functionCalls.set(turn, [...call.functionCalls.get(turn) ?? [], made]);
  call.face?.functionCall(name, "end");
  const json = wholeStart(JSON.stringify(result), LIMITS.functionResultCharsMax);
  options.media.send({ kind: "function_result", callId: call.id, functionCallId, json });
}

/** The setup that a model which hears by itself receives before the call. */
export function realtimeOf(
  options: CallingOptions, call: LiveCall, chosen: NonNullable<ChosenVoice["realtime"]>,
  functions: readonly ModelFunction[],
): NonNullable<CallSetup["realtime"]> {
  const { settings } = call.assistant;
  const offered = { ...NO_FUNCTIONS, offered: functions };
  return {
    ...chosen,
    instructions: instructionsOf(options, call),
    functions: joinFunctions([
      callFunctions(call.assistant, actionsOf(options, call)), offered,
    ]).offered,
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

/** Changes recogniser, voice, fixed sentences and prompt to the language the customer speaks. */
export async function followLanguage(
  options: CallingOptions, call: LiveCall, turn: { text: string; detected: string | null },
): Promise<void> {
  const { among } = call.language;
  if (among.length < 2) return;
  const before = call.spoken.current;
  call.spoken = await languageAfter(call.spoken, turn, among);
  const { current } = call.spoken;
  if (current === before || call.isOver) return;
  const chosen = await chosenOrWhyNot(options, call, call.assistant, current);
  if (call.isOver) return;
  if (typeof chosen === "string") {
    call.spoken = { current: before, doubt: null };
    return options.log.warn({ call_id: call.id, why: chosen }, "could not switch to the caller's language");
  }
  await become(options, call, chosen, "");
}

/** Continues the call with this voice, and with the instructions of its assistant. */
async function become(
  options: CallingOptions, call: LiveCall, chosen: ChosenVoice, greeting: string,
): Promise<void> {
  const { settings, engines, language } = chosen;
  const functions = call.isRealtime ? (await functionsOf(options, call, 0)).offered : [];
  call.spoken = { current: settings.language, doubt: null };
  call.language = { name: language, among: settings.languages };
  options.media.send({
    kind: "become", callId: call.id, settings, greeting, engines,
    instructions: instructionsOf(options, call),
    functions,
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
      media.send({ kind: "function", callId, running: true });
      return call.face?.functionCall(event.name, "start");
    case "function_call_end":
      call.functionCalls.set(turn, [...call.functionCalls.get(turn) ?? [], event.call]);
      media.send({ kind: "function", callId, running: false });
      return call.face?.functionCall(event.call.name, "end");
    case "usage":
    case "truncated":
      return;
  }
}

async function chosenOrWhyNot(
  { titlesOf, voiceOf }: CallingOptions, call: LiveCall, assistant: Assistant, language: string,
): Promise<ChosenVoice | string> {
  const { isRealtime, isOutbound } = call;
  // A page that sends sound is not asked to send words in the middle of the call.
  const words = call.hearing === "server" ? null : call.words;
  const titles = await titlesOf(assistant);
  return voiceOf(assistant, { isOutbound, isRealtime, language, words, titles });
}

/** Not awaited: writes are committed in the order they are issued, so it precedes what follows. */
function noteTransfer(
  options: CallingOptions, call: LiveCall,
  transfer: Pick<Transfer, "type" | "to" | "assistantUuid" | "status">, failureReason: string | null,
): void {
  const { calls, log } = options;
  const status = failureReason === null ? transfer.status : "failed";
  calls.addTransfer(call, { ...transfer, status, failureReason }, callNow(options, call))
    .catch((error: unknown) =>
      log.error({ err: error, call_id: call.id }, "could not record a transfer"));
}

function actionsOf(options: CallingOptions, call: LiveCall): CallActions {
  const { media } = options;
  const { id: callId, assistant } = call;
  return {
    hangUp: () => {
      // In the same turn it may have handed the call to another assistant.
      if (call.assistant !== assistant) return;
      media.send({ kind: "end_after_speech", callId, reason: "assistant_ended", to: null });
    },
    transfer: call.hasLine
      ? (to, type) => {
          // The caller may have talked the model into the number.
          const barred = options.calls.whyBarred(to);
          const status = "in-progress";
          noteTransfer(options, call, { type, to, assistantUuid: null, status }, barred);
          if (barred !== null) return barred;
          media.send({ kind: "end_after_speech", callId, reason: "transferred", to });
          return null;
        }
      : null,
    warmTransfer: (tool) => beginWarm(options, call, tool),
    sendDtmf: call.hasLine ? (digits) => media.send({ kind: "send_dtmf", callId, digits }) : null,
    handOver: async (assistantId, { message, greets }) => {
      const next = await options.findAssistant(call.accountId, assistantId);
      const chosen = next
        ? await chosenOrWhyNot(options, call, next, call.spoken.current)
        : ASSISTANT_GONE;
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
      await become(options, call, chosen, greeting);
      return null;
    },
  };
}
