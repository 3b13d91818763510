// Barge-in: whether a sound over the assistant takes the floor. A voice makes the assistant pause,
// which costs little; the words decide whether it goes on. Part of the reducer in turn-taker.ts.
import { forgetTurn, isFinalDue, said, timers, type Draft } from "./turn-draft.ts";
import { countWords, isBackchannel, isOpenPhrase, saysNothing, soundsLikeStop, stops } from "./wording.ts";

/** A sound shorter than this is one word at most, and is easily misrecognised. */
const SOUND_SHORTEST_MS = 600;
const SHORT_WORDS = 2;
/**
 * The share of a voice that must be periodic vowels. A caller's was two thirds and more, even under
 * noise; that of five people on a television a fifth, of a laugh under noise half.
 */
const CLEAR_SHARE = 0.35;
/** The same before all words are there: a doubtful sound waits for them. */
const CLEAR_SHARE_EARLY = 0.55;
/** Less sound than this is not judged. */
const JUDGED_MS = 250;
/** Nobody speaks more slowly: if a voice has fewer words, the recogniser has misunderstood it. */
const WORD_LONGEST_MS = 1000;
const GO_ON_AFTER_SILENCE_MS = 500;
const GO_ON_AFTER_FINAL_MS = 300;
const FALSE_INTERRUPTION_MS = 2000;
/** Nobody answers speech that has lasted no longer than this: they had not finished their turn. */
const CUT_OFF_MS = 1000;

/** A voice is heard over the assistant, which pauses until it is known what the voice wants. */
export function voiceOver({ state, settings, actions }: Draft): void {
  const mayPause = settings.interrupt.allowed && settings.interrupt.wordsMin === 0;
  if (state.phase !== "speaking" || state.isPaused || !mayPause) return;
  state.isPaused = true;
  actions.push({ kind: "pause" });
}

/** Words are heard over the assistant. */
export function wordsOver(draft: Draft): void {
  const { state, settings } = draft;
  if (state.phase !== "speaking" || !settings.interrupt.allowed || state.ending !== null) return;
  if (takesFloor(draft, state.partial !== "")) interrupt(draft);
}

function interrupt({ state, actions, nowMs }: Draft): void {
  actions.push({ kind: "interrupt" });
  if (nowMs - state.speakingMs < CUT_OFF_MS) state.wasCutOff = true;
  state.phase = "listening";
  state.isPaused = false;
  state.answering = "";
}

/** `mayGoOn`: these are not all the words, and they may still change. */
function takesFloor(draft: Draft, mayGoOn: boolean): boolean {
  const { hasVoice, soundMs } = draft.state;
  const { interrupt: { wordsMin }, wordsAreTold } = draft.settings;
  const text = said(draft);
  const count = countWords(text);
  if (count === 0 || (!hasVoice && !wordsAreTold)) return false;
  if (stops(text) || (!mayGoOn && soundsLikeStop(text))) return true;
  if (count < wordsMin || isBackchannel(text) || (mayGoOn && isOpenPhrase(text))) return false;
  if (wordsAreTold) return true;
  if (saysNothing(text) || (count === 1 && mayGoOn)) return false;
  if (soundMs < SOUND_SHORTEST_MS && (count <= SHORT_WORDS || mayGoOn)) return false;
  if (!isOneVoice(draft, mayGoOn ? CLEAR_SHARE_EARLY : CLEAR_SHARE)) return false;
  return soundMs <= WORD_LONGEST_MS * count;
}

const isOneVoice = ({ state: { audibleMs, clearMs } }: Draft, share: number): boolean =>
  audibleMs < JUDGED_MS || clearMs >= share * audibleMs;

/**
 * Decides whether a pause was an interruption. If no words say so, the assistant goes on, as it
 * does with the last sentence of a call: the call would end without it.
 */
export function settlePause(draft: Draft): void {
  const { state, actions, nowMs } = draft;
  if (state.isTalking) return;
  const isOver = state.unvoicedMs >= GO_ON_AFTER_SILENCE_MS && !isFinalDue(draft)
    && nowMs - state.finalMs >= GO_ON_AFTER_FINAL_MS;
  const isStale = state.unvoicedMs >= FALSE_INTERRUPTION_MS;
  if (!isOver && !isStale) return;
  if (state.ending === null && takesFloor(draft, false)) return interrupt(draft);
  const text = said(draft);
  if (text !== "") actions.push({ kind: "note", text });
  forgetTurn(draft);
  state.isPaused = false;
  timers(draft, { kind: "activity" });
  actions.push({ kind: "resume" });
}
