// Handles what the media thread reports of a call: turns are answered through the engine, record
// and transcript are stored, listeners are notified. Called by calling.ts.
import { steadyClock } from "#core/system.ts";
import type { AfterCall } from "./after-call.ts";
import { conclude } from "./ending.ts";
import { remember } from "./history.ts";
import { callNow, type CallingOptions, type LiveCall } from "./live-call.ts";
import { dismiss, operatorSaid } from "./persons.ts";
import { NOBODY_TOOK_IT } from "./records/transfers.ts";
import { answerFunctionCall, followLanguage, reply, replyTo, UNWANTED } from "./replies.ts";
import type { Said } from "./voice/brain.ts";
import type { FromMedia } from "./voice/protocol.ts";
import { warmReported } from "./warm.ts";

type Keep = (what: string, work: Promise<unknown>) => void;

interface Hands extends Pick<AfterCall, "finish"> {
  keep: Keep;
  forget(): void;
}

/** Handles one message of the media thread. Writes are committed in the order they are issued. */
export function handle(
  options: CallingOptions, call: LiveCall, message: FromMedia, { keep, finish, forget }: Hands,
): void {
  const { calls, system } = options;
  switch (message.kind) {
    case "ringing":
      return keep("call status", calls.change(call, "ringing", {}));
    case "answered":
      call.answered = steadyClock(system);
      return keep("call status", calls.change(call, "in-progress", {
        recordingFile: call.recordingFile, hearing: call.hearing, warnings: call.warnings,
        carrierMicrosPerMinute: call.carrierMicrosPerMinute,
      }));
    case "sound":
      return void (call.isSilent = !message.isComing);
    case "answered_by":
      return keep("call status", calls.change(call, "in-progress", { answeredBy: message.by }));
    case "reply":
      return keep("reply", reply(options, call, message.turn, {
        question: message.text, detected: message.language, ahead: message.ahead,
      }));
    case "go_ahead":
      if (call.turn?.number === message.turn) call.turn.goAhead();
      return;
    case "reengage":
      return keep("reply", replyTo(options, call, message.turn, "silence"));
    case "speak_up":
      return keep("reply", replyTo(options, call, message.turn, message.why));
    case "cancel":
      if (call.turn?.number === message.turn) call.turn.abort.abort(UNWANTED);
      return;
    case "function_call":
      return keep("function call", answerFunctionCall(options, call, message));
    case "said":
      return said(options, call, message.said, keep);
    case "delta":
      calls.transcriptDelta(call, { speaker: message.speaker, text: message.text });
      return call.face?.transcript(message.speaker, message.text, false);
    case "state":
      return call.face?.state(message.state);
    case "frame":
      return call.face?.frame(message.pcm);
    case "peer":
      return call.face?.peer(message.report);
    case "clear":
      return call.face?.clear();
    case "mark":
      return call.face?.mark();
    case "dtmf":
      return call.face?.line?.dtmf(message.digits);
    case "transfer":
      return call.face?.line?.transfer(message.to);
    case "warm":
      return keep("warm transfer", warmReported(options, call, message.report));
    case "transfer_failed":
      return keep("transfer", transferFailed(options, call, message.detail));
    case "person_hears":
      return call.person?.microphone?.onAudio(message.pcm);
    case "tap":
      return call.listeners.forEach(({ onAudio }) => onAudio(message.pcm, call.rate));
    case "over":
      call.isOver = true;
      call.turn?.abort.abort(UNWANTED);
      dismiss(call);
      return keep("end of a call", conclude(options, call, message, finish).finally(() => {
        forget();
        call.done.resolve();
      }));
  }
}

const transferFailed = (
  options: CallingOptions, call: LiveCall, detail: string | null,
): Promise<void> =>
  options.calls.failTransfer(call, detail ?? NOBODY_TOOK_IT, callNow(options, call));

function said(options: CallingOptions, call: LiveCall, words: Said, keep: Keep): void {
  const { calls } = options;
  if (words.speaker === "operator") {
    return keep("transcript", operatorSaid(calls, call, words));
  }
  const { speaker, text, startMs, endMs, interrupted, turn, counts } = words;
  const functionCalls = turn === null ? [] : call.functionCalls.get(turn) ?? [];
  if (turn !== null) call.functionCalls.delete(turn);
  call.saidMs = endMs;
  if (text !== "" || functionCalls.length > 0) {
    const entry = { speaker, text, startMs, endMs, interrupted, functionCalls };
    keep("transcript", calls.addTranscript(call, entry));
    if (text !== "") call.face?.transcript(speaker, text, true);
  }
  // A model that hears by itself also answers by itself: its turns are seen only here.
  if (call.isRealtime && speaker === "customer" && text !== "") {
    keep("language", followLanguage(options, call, { text, detected: null }));
  }
  // Results of functions count even when the words that followed them were never heard.
  if ((counts && text !== "") || functionCalls.length > 0) {
    const heard = counts ? text : "";
    remember(call.history, speaker === "customer" ? "user" : "assistant", heard, functionCalls);
  }
}
