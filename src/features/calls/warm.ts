// Warm transfers in the main thread: which colleague the assistant's function calls, over which
// line and with which words; the money and record; and what the model is told of the outcome.
// Called by replies.ts, and by from-media.ts with what the media thread reports.
import { join } from "node:path";
import { personaOf } from "#features/assistants/turn-context.ts";
import { LIMITS } from "#core/limits.ts";
import { allVariables } from "#engine/prompt.ts";
import { fillTemplate } from "#engine/template.ts";
import type { WarmTool } from "./functions.ts";
import { remember } from "./history.ts";
import type { ColleagueLine } from "./lines.ts";
import { callNow, type CallingOptions, type LiveCall } from "./live-call.ts";
import { because } from "./records/failures.ts";
import { TAKEN_OVER } from "./records/transfers.ts";
import { WHY_NOT_TAKEN } from "./records/warm-stages.ts";
import type { ChosenVoice } from "./voice-choice.ts";
import type { WarmReport, WarmSetup } from "./voice/warm-host.ts";

type Options = CallingOptions;
type Begun = Extract<
  Awaited<ReturnType<Options["calls"]["beginTransfer"]>>, { kind: "begun" }>;

/** Resolves to a sentence when the colleague is not called; null: they are being called. */
export async function beginWarm(
  options: Options, call: LiveCall, tool: WarmTool,
): Promise<string | null> {
  const { calls } = options;
  const refuse = async (why: string): Promise<string> => {
    await calls.addTransfer(call, {
      type: tool.type, to: tool.to, assistantUuid: null, status: "failed", failureReason: why,
      outcome: "refused",
    }, callNow(options, call));
    return why;
  };
  const chosen = voiceOf(options, call);
  if (typeof chosen === "string") return refuse(chosen);
  const record = await calls.findById(call.id);
  if (!record) return "The call is over.";
  const line = await options.colleagueLineOf(record, call.assistant, tool);
  if (typeof line === "string") return refuse(line);
  const begun = await calls.beginTransfer(call, {
    type: tool.type, to: tool.to, at: callNow(options, call),
    carrierMicrosPerMinute: options.carrierRateOf({
      carrier: line.carrier, direction: "outbound", called: tool.to,
    }),
  });
  if (begun.kind !== "begun") return begun.kind === "over" ? "The call is over." : begun.reason;
  if (call.person?.isAlone) {
    // Taken over meanwhile: the person who talks with the caller does not want them put on hold.
    await calls.stepTransfer(call, {
      number: begun.number, stage: "over", outcome: "failed", failureReason: TAKEN_OVER,
      at: callNow(options, call),
    });
    return TAKEN_OVER;
  }
  options.media.send({
    kind: "warm", callId: call.id, setup: setupOf(options, call, tool, { line, begun, chosen }),
  });
  void brief(options, call, tool);
  return null;
}

/** A synthesizer, even when the model speaks by itself, and a recogniser if there is one. */
function voiceOf(options: Options, call: LiveCall): ChosenVoice | string {
  const { isOutbound, spoken: { current: language }, words } = call;
  const base = { isOutbound, isRealtime: false, language, titles: [] };
  const chosen = options.voiceOf(call.assistant, { ...base, words });
  // A colleague who cannot be understood can press keys.
  return typeof chosen === "string"
    ? options.voiceOf(call.assistant, { ...base, words: "script" }) : chosen;
}

/** Fills in variables, with the time in the colleague's time zone. */
function fillerOf(
  { system }: Options, call: LiveCall, { timezone }: WarmTool,
): (text: string) => string {
  const { assistant, given } = call;
  const persona = personaOf(assistant);
  const variables = allVariables(
    timezone === null ? persona : { ...persona, timezone }, given, system.now(), {
      customerPhone: call.variables.customer_phone ?? "",
      assistantPhone: call.variables.assistant_phone ?? "",
    });
  return (text) => fillTemplate(text, variables);
}

function setupOf(
  options: Options, call: LiveCall, tool: WarmTool,
  { line, begun, chosen }: { line: ColleagueLine; begun: Begun; chosen: ChosenVoice },
): WarmSetup {
  const { settings, engines } = chosen;
  const { assistant: { settings: { ringing_time: ringingS } } } = call;
  const { number, secondsMax, afterwardsS, recordingFile } = begun;
  const fill = fillerOf(options, call, tool);
  const { phrases, language, languages, hints, voice } = settings;
  return {
    number, engines: line.carrier === "loopback" ? { ...engines, transcriber: null } : engines,
    leg: { kind: "dialled", ringingMs: ringingS * 1000, ...line },
    voice: { language, languages, hints, voice },
    settings: { ringingMs: ringingS * 1000, talkMs: secondsMax * 1000 },
    texts: {
      hold: fill(tool.texts.hold), opening: fill(tool.texts.opening), question: phrases.takeCall,
      connected: fill(tool.texts.connected), notConnected: phrases.notConnected,
    },
    musicGain: tool.musicGain,
    afterwardsMs: afterwardsS * 1000,
    outOfTime: secondsMax < LIMITS.warmTalkS ? "balance" : "max_duration",
    recordingPath: recordingFile && join(options.recordings.folder, recordingFile),
  };
}

/** Runs while the colleague's telephone rings. */
async function brief(options: Options, call: LiveCall, tool: WarmTool): Promise<void> {
  const fill = fillerOf(options, call, tool);
  const text = await options.summarise({
    assistant: call.assistant, instructions: fill(tool.texts.summary),
    history: [...call.history], language: call.language.name,
    localTime: fill("{{current_time}} on {{current_date}}"),
  });
  if (!call.isOver) options.media.send({ kind: "summary", callId: call.id, text });
}

/** Records what the media thread reports of a warm transfer. */
export async function warmReported(
  options: Options, call: LiveCall, report: WarmReport,
): Promise<void> {
  const { calls } = options;
  if (report.kind === "said") {
    const { speaker, text, startMs, endMs, interrupted } = report.said;
    if (text === "") return;
    return calls.addTranscript(call, {
      speaker, text, startMs, endMs, interrupted, functionCalls: [], transfer: report.number,
    });
  }
  const { number, stage, outcome, detail } = report;
  const isNotTaken = outcome !== null && outcome !== "completed" && outcome !== "refused";
  const why = isNotTaken ? WHY_NOT_TAKEN[outcome] : null;
  const failureReason = why === null ? null : `${why.slice(0, -1)}${because(detail)}.`;
  if (why !== null) remember(call.history, "user", `[The caller was not connected. ${why}]`);
  const at = callNow(options, call);
  await calls.stepTransfer(call, { number, stage, outcome, failureReason, at });
}
