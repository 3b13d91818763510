// A warm transfer from the function that asks for it to its end: hold, dial, brief, ask, connect. A
// pure reducer without IO or clock; its stages are those of warm-stages.ts. warm-session.ts feeds
// it and carries out what it decides.
import { mayStep, type TransferOutcome, type WarmStage } from "#features/calls/records/warm-stages.ts";
import type { LegEndCause } from "#providers/carriers/port.ts";

export const WARM_LIMITS = {
  /** After this the colleague is called even if the caller has not heard the announcement. */
  announceMs: 40_000,
  /** Added to the ringing time: how long a leg that reports nothing is waited for. */
  reportMs: 5000,
  /** How long a summary is waited for once the colleague has heard the opening. */
  summaryMs: 6000,
  briefingMs: 90_000,
  /** From the end of the question until it is repeated, and then until the transfer times out. */
  decideMs: 12_000,
  asksMax: 2,
} as const;

/** Keys that the colleague presses. */
const ACCEPT_KEY = "1";
const DECLINE_KEY = "2";

export interface WarmSettings {
  ringingMs: number;
  /** How long the reserved money lasts, from the beginning of the transfer. */
  talkMs: number;
}

export type WarmEvent =
  /** The caller has heard that they are put on hold. */
  | { kind: "announced" }
  | { kind: "ringing" }
  | { kind: "answered" }
  /** The leg to the colleague has ended, whoever ended it. */
  | { kind: "leg_ended"; cause: LegEndCause }
  /** The model's summary has come, or will not. */
  | { kind: "summarised" }
  /** What was being said to the colleague has been played. */
  | { kind: "spoken" }
  | { kind: "key"; digit: string }
  /** What the colleague's words mean as an answer. */
  | { kind: "answer"; takes: boolean }
  | { kind: "machine" }
  /** The call itself ends. */
  | { kind: "caller_left" }
  /** Somebody else goes on with the caller, who is told nothing. */
  | { kind: "cancelled" }
  /** Time passes; at least every 20 ms. */
  | { kind: "tick" };

type Spoken = "opening" | "summary" | "question";

export type WarmAction =
  | { kind: "stage"; stage: WarmStage; outcome: TransferOutcome | null }
  | { kind: "music"; on: boolean }
  | { kind: "dial" }
  | { kind: "say"; what: Spoken }
  /** From now on the two hear each other. */
  | { kind: "connect" }
  | { kind: "hang_up_leg" }
  /** The assistant goes on with the caller; `says`: it first says why. */
  | { kind: "resume"; says: boolean }
  /** The talk of the two is over: so is the call. `isOutOfTime`: the reserved money is spent. */
  | { kind: "end_call"; isOutOfTime: boolean };

export interface WarmState {
  readonly stage: WarmStage;
  readonly outcome: TransferOutcome | null;
  readonly begunMs: number;
  /** When the stage began, or the present wait within it. */
  readonly sinceMs: number;
  readonly saying: Spoken | null;
  readonly isSummarised: boolean;
  readonly asks: number;
  /** Dialled, and not known to have ended. */
  readonly hasLeg: boolean;
  readonly hasMusic: boolean;
}

interface Reduced {
  state: WarmState;
  actions: WarmAction[];
}
interface Draft {
  state: { -readonly [Key in keyof WarmState]: WarmState[Key] };
  actions: WarmAction[];
  settings: WarmSettings;
  nowMs: number;
}

export const beginWarm = (nowMs: number): WarmState => ({
  stage: "announcing", outcome: null, begunMs: nowMs, sinceMs: nowMs, saying: null,
  isSummarised: false, asks: 0, hasLeg: false, hasMusic: false,
});

export function reduceWarm(
  settings: WarmSettings, state: WarmState, event: WarmEvent, nowMs: number,
): Reduced {
  if (state.stage === "over") return { state, actions: [] };
  const draft: Draft = { state: { ...state }, actions: [], settings, nowMs };
  receive(draft, event);
  return { state: draft.state, actions: draft.actions };
}

function receive(draft: Draft, event: WarmEvent): void {
  const { state } = draft;
  const { stage } = state;
  switch (event.kind) {
    case "announced":
      return stage === "announcing" ? dial(draft) : undefined;
    case "ringing":
      return stage === "dialling" ? enter(draft, "ringing") : undefined;
    case "answered":
      return mayStep(stage, "briefing") ? brief(draft) : undefined;
    case "leg_ended":
      state.hasLeg = false;
      return finish(draft, stage === "connected" ? "completed" : outcomeOf(event.cause));
    case "summarised":
      state.isSummarised = true;
      if (stage === "briefing" && state.saying === null) say(draft, "summary");
      return;
    case "spoken":
      return spoken(draft);
    case "key":
      if (event.digit === ACCEPT_KEY) return decide(draft, true);
      return event.digit === DECLINE_KEY ? decide(draft, false) : undefined;
    case "answer":
      // Some pick up with "Yes?": words count only once the question was asked.
      return stage === "asking" ? decide(draft, event.takes) : undefined;
    case "machine":
      return isTalkedTo(stage) ? finish(draft, "voicemail") : undefined;
    case "caller_left":
      return finish(draft, stage === "connected" ? "completed" : "caller_left", "gone");
    case "cancelled":
      return finish(draft, stage === "connected" ? "completed" : "failed", "cancelled");
    case "tick":
      return settle(draft);
  }
}

const isTalkedTo = (stage: WarmStage): boolean => stage === "briefing" || stage === "asking";

function outcomeOf(cause: LegEndCause): TransferOutcome {
  switch (cause) {
    case "busy":
    case "no_answer":
      return cause;
    case "rejected":
    // A colleague who hangs up on the briefing does not want the call.
    case "far_hung_up":
      return "declined";
    case "we_hung_up":
    case "transferred":
    case "failed":
    case "media_timeout":
      return "failed";
  }
}

function enter({ state, actions, nowMs }: Draft, stage: WarmStage): void {
  if (!mayStep(state.stage, stage)) throw new Error(`no step from ${state.stage} to ${stage}`);
  state.stage = stage;
  state.sinceMs = nowMs;
  actions.push({ kind: "stage", stage, outcome: state.outcome });
}

function music({ state, actions }: Draft, on: boolean): void {
  if (state.hasMusic === on) return;
  state.hasMusic = on;
  actions.push({ kind: "music", on });
}

function say({ state, actions }: Draft, what: Spoken): void {
  state.saying = what;
  if (what === "question") state.asks += 1;
  actions.push({ kind: "say", what });
}

function dial(draft: Draft): void {
  enter(draft, "dialling");
  music(draft, true);
  draft.state.hasLeg = true;
  draft.actions.push({ kind: "dial" });
}

function brief(draft: Draft): void {
  enter(draft, "briefing");
  say(draft, "opening");
}

function spoken(draft: Draft): void {
  const { state, nowMs } = draft;
  const said = state.saying;
  if (said === null || !isTalkedTo(state.stage)) return;
  state.saying = null;
  if (said === "summary") return say(draft, "question");
  if (said === "opening") {
    state.sinceMs = nowMs;
    return state.isSummarised ? say(draft, "summary") : undefined;
  }
  if (state.stage === "briefing") enter(draft, "asking");
  else state.sinceMs = nowMs;
}

function decide(draft: Draft, takes: boolean): void {
  if (!isTalkedTo(draft.state.stage)) return;
  if (!takes) return finish(draft, "declined");
  draft.state.saying = null;
  enter(draft, "connected");
  music(draft, false);
  draft.actions.push({ kind: "connect" });
}

/** `gone`: the caller is not there to be told why; `cancelled`: they are not to be told. */
function finish(
  draft: Draft, outcome: TransferOutcome, why: "gone" | "cancelled" | "out of time" | null = null,
): void {
  const { state, actions } = draft;
  const wasConnected = state.stage === "connected";
  state.outcome = outcome;
  state.saying = null;
  enter(draft, "over");
  music(draft, false);
  if (state.hasLeg) actions.push({ kind: "hang_up_leg" });
  state.hasLeg = false;
  if (why === "gone") return;
  if (why === "cancelled" || !wasConnected) {
    return void actions.push({ kind: "resume", says: why === null });
  }
  actions.push({ kind: "end_call", isOutOfTime: why === "out of time" });
}

function settle(draft: Draft): void {
  const { state, settings, nowMs } = draft;
  const passedMs = nowMs - state.sinceMs;
  if (nowMs - state.begunMs >= settings.talkMs) {
    return finish(draft, state.stage === "connected" ? "completed" : "timed_out",
      state.stage === "connected" ? "out of time" : null);
  }
  switch (state.stage) {
    case "announcing":
      return passedMs >= WARM_LIMITS.announceMs ? dial(draft) : undefined;
    case "dialling":
    case "ringing":
      return passedMs >= settings.ringingMs + WARM_LIMITS.reportMs
        ? finish(draft, "no_answer") : undefined;
    case "briefing":
      return settleBriefing(draft, passedMs);
    case "asking":
      if (state.saying === null && passedMs >= WARM_LIMITS.decideMs) {
        return state.asks < WARM_LIMITS.asksMax ? say(draft, "question") : finish(draft, "timed_out");
      }
      return passedMs >= WARM_LIMITS.briefingMs ? finish(draft, "timed_out") : undefined;
    case "connected":
    case "over":
      return;
  }
}

function settleBriefing(draft: Draft, passedMs: number): void {
  if (passedMs >= WARM_LIMITS.briefingMs) return finish(draft, "timed_out");
  const isWaiting = draft.state.saying === null && !draft.state.isSummarised;
  if (isWaiting && passedMs >= WARM_LIMITS.summaryMs) say(draft, "question");
}
