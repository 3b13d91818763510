// Who speaks when: a pure reducer over what is heard, recognised, played and counted. It does no
// IO and reads no clock; the same events at the same times always give the same actions, so a call
// can be replayed from its events. voice-session.ts feeds it and carries out what it decides.
// barge-in.ts decides what takes the floor, answering-machines.ts who has answered, taking-part.ts
// what a person changes; call-timers.ts has silence, keys and the length of the call.
import type { EndReason } from "#features/calls/records/records.ts";
import {
  judge, leaveMessage, MACHINE_BUDGET_MS, MACHINE_RUN_MS, settleMachine,
} from "./answering-machines.ts";
import { settlePause, voiceOver, wordsOver } from "./barge-in.ts";
import { reduceTimers, TIMERS_START } from "./call-timers.ts";
import {
  askFinal, discard, FINAL_LATEST_MS, forgetSound, forgetTurn, freshWords, hangUp, isFinalDue,
  joined, said, think, timers, turnGoesOn, withFinal, type Draft,
} from "./turn-draft.ts";
import type {
  Phase, Reduced, TurnAction, TurnEvent, TurnSettings, TurnState,
} from "./turn-events.ts";
import { endingOf, judgedEnding, SHARES } from "./patience.ts";
import { comeBackFromElsewhere, settleElsewhere, standAside } from "./elsewhere.ts";
import {
  holdBreath, noteSaid, personAfter, receivePerson, settleAside, settleHint,
} from "./taking-part.ts";
import { fillerTone, sameWords, soundsLikeMachine } from "./wording.ts";

export const START: TurnState = {
  phase: "dialling", timers: TIMERS_START, voicedMs: 0, unvoicedMs: 0, isTalking: false,
  hasTurn: false, turnFromMs: 0, pause: 0, judged: null, frameMs: 0,
  hasVoice: false, lastVoiceMs: 0, playedOutMs: 0, soundMs: 0,
  audibleMs: 0, clearMs: 0,
  finals: "", partial: "", finalAskedMs: null, finalsDue: 0, finalMs: 0, spentWords: 0,
  prepared: null, prepares: 0, answering: "",
  isPaused: false, speakingMs: 0, wasCutOff: false, thinkingMs: 0,
  fillerPlayed: false, functionRunning: false, ending: null,
  listener: "unknown", runMs: 0, messageLeft: false, person: null, isHinted: false, elsewhere: "no",
};

const LISTEN_THRESHOLD = 0.5;
/** The least periodicity of a vowel that one voice speaks. */
const CLEAR = 0.7;
const LISTEN_CONFIRM_MS = 60;
/** A gap this short is part of a word. */
const WORD_GAP_MS = 100;
/** After this much silence the recogniser is asked for its final text. */
const FINALIZE_AFTER_MS = 200;
const ENDPOINT_SHORTEST_MS = 300;
const ENDPOINT_LONGEST_MS = 2500;
const FILLER_AFTER_MS = 700;
/** How often one turn is answered in advance at most. */
const PREPARES_MAX = 3;
const HUMAN_SILENCE_MS = 500;
/** How long sound is waited for when the words do not come from it. */
const SOUND_LATEST_MS = 200;

const NOTHING: readonly TurnAction[] = [];

export function reduceTurn(
  settings: TurnSettings,
  state: TurnState,
  event: TurnEvent,
  nowMs: number,
): Reduced {
  // A call that comes back from a failed transfer is not over.
  if (state.phase === "over" && event.kind !== "transfer_failed") {
    return receiveHandedOn(settings, state, event, nowMs);
  }
  const draft: Draft = { state: { ...state }, actions: [], settings, nowMs };
  receive(draft, event);
  if (draft.state.phase !== "dialling") settle(draft);
  return { state: draft.state, actions: draft.actions };
}

function receive(draft: Draft, event: TurnEvent): void {
  const { state, nowMs } = draft;
  switch (event.kind) {
    case "answered":
      return answered(draft);
    case "tick":
      return passSilence(draft);
    case "voice":
      state.frameMs = nowMs;
      return receiveFrame(draft, event);
    case "partial":
      return receivePartial(draft, event.text);
    case "final":
      return receiveFinal(draft, event.text);
    case "end_of_turn":
      if (state.phase === "aside") return noteSaid(draft);
      if (state.phase === "listening" || state.phase === "waiting") takeTurn(draft);
      return;
    case "end_of_turn_likely":
      return prepare(draft, said(draft));
    case "end_judged":
      if (event.pause === state.pause && !state.isTalking) state.judged = event.probability;
      return;
    case "dtmf":
    case "held":
      return void timers(draft, event);
    case "audio_started":
      state.phase = "speaking";
      state.speakingMs = nowMs;
      return holdBreath(draft);
    case "saying":
      return think(draft);
    case "played_out":
      return playedOut(draft);
    case "reply_empty":
      return playedOut(draft);
    case "function":
      state.functionRunning = event.running;
      return void timers(draft, { kind: "activity" });
    case "end_after_speech":
      if (event.reason === "server_restarted") return sayGoodbye(draft, event.reason);
      if (state.phase === "aside") return;
      // A model that has transferred a call may hang up too, in the same breath.
      if (state.ending === "transferred" && event.reason === "assistant_ended") return;
      state.ending = event.reason;
      if (state.phase === "listening" || state.phase === "waiting") hangUp(draft, event.reason);
      return;
    case "transfer_failed":
      state.ending = null;
      state.phase = state.person?.isAlone ? "aside" : "listening";
      state.lastVoiceMs = nowMs;
      return void timers(draft, { kind: "activity" });
    case "beep":
      if (state.listener === "machine") leaveMessage(draft);
      return;
    case "answered_by":
      return judge(draft, event.by === "unknown" ? null : event.by);
    case "person_joined":
    case "person_left":
    case "person_voice":
    case "hint":
      return receivePerson(draft, event);
    case "stand_aside":
      return standAside(draft);
    case "come_back":
      return comeBackFromElsewhere(draft);
  }
}

function receiveHandedOn(
  settings: TurnSettings, state: TurnState, event: TurnEvent, nowMs: number,
): Reduced {
  if (event.kind === "tick") return settleHandedOn(settings, state, nowMs);
  const isPersons = event.kind === "person_joined" || event.kind === "person_left";
  return { state: isPersons ? personAfter(state, event) : state, actions: NOTHING };
}

/** While the carrier has not said whether somebody took the call, its time passes all the same. */
function settleHandedOn(settings: TurnSettings, state: TurnState, nowMs: number): Reduced {
  if (state.ending !== "transferred") return { state, actions: NOTHING };
  const { action } = reduceTimers(
    settings, state.timers, { kind: "check_duration", mayLeave: false }, nowMs);
  if (action?.kind !== "hang_up") return { state, actions: NOTHING };
  return { state: { ...state, ending: action.reason }, actions: [action] };
}

function answered(draft: Draft): void {
  const { state, settings, nowMs } = draft;
  if (state.phase !== "dialling") return;
  timers(draft, { kind: "answered" });
  state.lastVoiceMs = state.frameMs = nowMs;
  if (!settings.voicemail.detects) state.listener = "human";
  state.phase = settings.waitForCustomer ? "waiting" : "listening";
  if (!settings.waitForCustomer && settings.hasGreeting) greet(draft);
}

function greet(draft: Draft): void {
  draft.actions.push({ kind: "greet" });
  think(draft);
}

const isAssistants = (phase: Phase): boolean => phase === "speaking" || phase === "thinking";

// What is heard

function receiveFrame(draft: Draft, frame: Extract<TurnEvent, { kind: "voice" }>): void {
  const { state, settings, nowMs } = draft;
  const { probability, frameMs, quietMs, periodicity } = frame;
  if (state.phase === "dialling") return;
  const over = state.phase === "speaking" && !state.isPaused;
  const threshold = over ? settings.interrupt.threshold : LISTEN_THRESHOLD;
  if (probability >= threshold) {
    state.voicedMs += frameMs;
    state.soundMs += frameMs;
    if (quietMs < frameMs / 2) {
      state.audibleMs += frameMs;
      if (periodicity >= CLEAR) state.clearMs += frameMs;
    }
    // A breath belongs to the run, a silence ends it.
    const breathMs = state.unvoicedMs < HUMAN_SILENCE_MS ? state.unvoicedMs : 0;
    state.runMs = breathMs === state.unvoicedMs ? state.runMs + breathMs + frameMs : frameMs;
    state.unvoicedMs = 0;
    const confirmMs = over ? settings.interrupt.confirmMs : LISTEN_CONFIRM_MS;
    if (!state.isTalking && state.voicedMs >= confirmMs) speechBegan(draft);
    if (state.isTalking && quietMs < frameMs) state.lastVoiceMs = nowMs - quietMs;
    return;
  }
  state.unvoicedMs += frameMs;
  if (state.unvoicedMs >= WORD_GAP_MS) {
    state.voicedMs = 0;
    if (!state.hasTurn) forgetSound(draft);
  }
  if (state.unvoicedMs >= HUMAN_SILENCE_MS && state.listener === "unknown") {
    if (state.runMs > 0 && state.timers.hasSpoken) judge(draft, "human");
    state.runMs = 0;
  }
  if (!state.isTalking || state.unvoicedMs < FINALIZE_AFTER_MS) return;
  state.isTalking = false;
  askFinal(draft);
  askEnd(draft);
}

/** Counts missing sound as silence: told words need no sound, and a page's may stall or be none. */
function passSilence(draft: Draft): void {
  const { state, settings, nowMs } = draft;
  const frameMs = nowMs - state.frameMs;
  if (!settings.wordsAreTold || frameMs < SOUND_LATEST_MS) return;
  state.frameMs = nowMs;
  receiveFrame(draft, { kind: "voice", probability: 0, frameMs, quietMs: frameMs, periodicity: 0 });
}

function askEnd({ state, settings, actions, nowMs }: Draft): void {
  if (!settings.judgesEnds || settings.detectsTurns || isAssistants(state.phase)) return;
  state.pause += 1;
  actions.push({ kind: "judge_end", pause: state.pause, spokenMs: nowMs - state.turnFromMs });
}

function speechBegan(draft: Draft): void {
  const { state, nowMs } = draft;
  state.isTalking = true;
  turnGoesOn(draft);
  state.hasVoice = true;
  state.lastVoiceMs = nowMs;
  discard(draft);
  timers(draft, { kind: "customer_spoke" });
  if (state.phase === "thinking") return goOnListening(draft);
  voiceOver(draft);
}

/** The customer had not finished after all: the answer is dropped, the words are kept. */
function goOnListening(draft: Draft): void {
  const { state, actions } = draft;
  // A greeting or a farewell is not taken back before it is heard.
  if (state.answering === "" || state.functionRunning) return;
  actions.push({ kind: "cancel_reply" });
  state.wasCutOff = true;
  state.phase = "listening";
  state.finals = joined(state.answering, state.finals);
  state.answering = "";
}

function receivePartial(draft: Draft, text: string): void {
  const fresh = freshWords(draft.state, text);
  if (fresh === draft.state.partial) return;
  receiveWords(draft, () => (draft.state.partial = fresh));
}

function receiveFinal(draft: Draft, text: string): void {
  const { state } = draft;
  state.finalMs = draft.nowMs;
  receiveWords(draft, () => Object.assign(state, withFinal(state, text)));
  state.finalAskedMs = null;
}

function receiveWords(draft: Draft, take: () => void): void {
  const { state, settings, nowMs } = draft;
  const before = said(draft);
  take();
  const text = said(draft);
  if (!sameWords(before, text)) discard(draft);
  if (text === "" || state.phase === "dialling") return;
  // The recogniser has heard what the voice detector has not (yet): silence begins anew.
  if (!state.isTalking && state.finalAskedMs === null && !sameWords(before, text)) {
    state.lastVoiceMs = nowMs;
    state.unvoicedMs = 0;
  }
  if (!state.hasTurn) turnGoesOn(draft);
  timers(draft, { kind: "customer_spoke" });
  if (settings.voicemail.detects && soundsLikeMachine(text)) judge(draft, "machine");
  if (draft.state.listener !== "machine") wordsOver(draft);
}

// What follows from the time that has passed

function settle(draft: Draft): void {
  const { state, nowMs } = draft;
  if (state.phase === "over") return;
  // No goodbye is said to a machine.
  const mayLeave = state.ending === null && state.listener !== "machine"
    && state.phase !== "aside";
  const due = timers(draft, { kind: "check_duration", mayLeave });
  if (due?.kind === "hang_up") return hangUp(draft, due.reason);
  settleFinal(draft);
  settleElsewhere(draft);
  if (state.phase === "aside") return settleAside(draft);
  if (state.listener === "machine") return settleMachine(draft);
  if (state.listener === "unknown") {
    if (state.runMs >= MACHINE_RUN_MS) return judge(draft, "machine");
    if (nowMs - state.timers.answeredMs >= MACHINE_BUDGET_MS) judge(draft, null);
  }
  if (due?.kind === "say_goodbye") return sayGoodbye(draft, due.reason);
  if (state.isPaused && !state.person?.isTalking) settlePause(draft);
  if (state.phase === "listening" || state.phase === "waiting") settleTurn(draft);
  if (state.phase === "thinking") settleThinking(draft);
  settleDigits(draft);
  if (state.phase === "listening") settleHint(draft);
  if (state.phase === "listening" || state.phase === "waiting") settleSilence(draft);
}

/** Words without a detected voice have no end that requests their final: it is requested here. */
function settleFinal(draft: Draft): void {
  const { state, nowMs } = draft;
  if (state.finalAskedMs !== null && nowMs - state.finalAskedMs >= FINAL_LATEST_MS) {
    state.finalAskedMs = null;
    state.finalsDue = 0;
    state.spentWords = 0;
  }
  if (state.partial === "" || state.isTalking || state.finalAskedMs !== null) return;
  if (state.unvoicedMs >= FINALIZE_AFTER_MS) askFinal(draft);
}

function sayGoodbye(draft: Draft, reason: EndReason): void {
  const { state, actions } = draft;
  actions.push({ kind: "interrupt" }, { kind: "say_goodbye", reason });
  state.ending = reason;
  think(draft);
  state.isPaused = false;
}

function patienceMs({ state, settings }: Draft, text: string): number {
  const { endpoint, detectsTurns } = settings;
  if (detectsTurns) return ENDPOINT_LONGEST_MS;
  const ending = judgedEnding(endingOf(text), state.judged);
  if (endpoint.type === "ai" && ending === "open") return ENDPOINT_LONGEST_MS;
  // A customer who was cut off once pauses where others do not.
  const share = Math.max(SHARES[ending], state.wasCutOff ? SHARES.usual : 0);
  return Math.min(ENDPOINT_LONGEST_MS, Math.max(ENDPOINT_SHORTEST_MS, endpoint.silenceMs * share));
}

function settleTurn(draft: Draft): void {
  const { state } = draft;
  if (!state.hasTurn || state.isTalking || state.person?.isTalking) return;
  if (isFinalDue(draft)) return;
  const text = said(draft);
  if (state.unvoicedMs < patienceMs(draft, text) && text !== "") {
    if (state.partial === "") prepare(draft, text);
    return;
  }
  if (text === "") {
    // Noise, or words nobody understood.
    forgetTurn(draft);
    return;
  }
  takeTurn(draft);
}

/** Requests the reply while the turn may still go on; nothing of it is heard before its end. */
function prepare(draft: Draft, text: string): void {
  const { state, settings, actions } = draft;
  const mayBegin = settings.isEager && state.phase === "listening" && state.ending === null;
  if (!mayBegin || text === "" || state.prepared !== null) return;
  if (state.prepares >= PREPARES_MAX) return;
  state.prepares += 1;
  state.prepared = text;
  actions.push({ kind: "prepare", text });
}

function takeTurn(draft: Draft): void {
  const { state, settings, actions, nowMs } = draft;
  const text = said(draft);
  if (text === "") return;
  const wasWaiting = state.phase === "waiting";
  const hasVoice = state.hasVoice && state.lastVoiceMs >= state.playedOutMs;
  if (state.prepared === text && !wasWaiting) state.prepared = null;
  forgetTurn(draft);
  if (wasWaiting && settings.hasGreeting) {
    actions.push({ kind: "note", text });
    return greet(draft);
  }
  actions.push({ kind: "reply", text, hasVoice });
  state.isHinted = false;
  state.phase = "thinking";
  state.answering = text;
  state.thinkingMs = nowMs;
  state.fillerPlayed = !settings.hasFillers;
}

function settleThinking({ state, actions, nowMs }: Draft): void {
  if (state.fillerPlayed || state.person || nowMs - state.thinkingMs < FILLER_AFTER_MS) return;
  state.fillerPlayed = true;
  actions.push({ kind: "filler", tone: fillerTone(state.answering) });
}

function settleDigits(draft: Draft): void {
  const { state, settings, actions } = draft;
  // Without interruptions keys wait until the assistant has finished, as words do.
  if (isAssistants(state.phase) && !settings.interrupt.allowed) return;
  const due = timers(draft, { kind: "check_keypad" });
  if (due?.kind !== "keys") return;
  if (isAssistants(state.phase)) {
    actions.push(state.phase === "speaking" ? { kind: "interrupt" } : { kind: "cancel_reply" });
    state.isPaused = false;
  }
  state.phase = "listening";
  state.finals = joined(said(draft), due.text);
  state.partial = "";
  takeTurn(draft);
}

function playedOut(draft: Draft): void {
  const { state, settings, nowMs } = draft;
  timers(draft, { kind: "activity" });
  state.isPaused = false;
  state.playedOutMs = nowMs;
  if (!isAssistants(state.phase)) return;
  state.answering = "";
  state.phase = "listening";
  if (state.ending !== null) return hangUp(draft, state.ending);
  if (state.listener !== "machine") return;
  if (settings.voicemail.ends) return hangUp(draft, "voicemail");
  // The message is left; what is said from now on is answered, whoever says it.
  if (state.messageLeft) state.listener = "human";
}

function settleSilence(draft: Draft): void {
  const { state, actions } = draft;
  const isBusy = state.hasTurn || state.isTalking || state.functionRunning
    || (state.person?.isTalking ?? false);
  const due = timers(draft, { kind: "check_silence", isBusy });
  if (due?.kind === "hang_up") return hangUp(draft, due.reason);
  if (due?.kind !== "reengage") return;
  think(draft);
  actions.push({ kind: "reengage" });
}
