// Warm transfers as the pure machine has them: its table, and that no order of events breaks what
// caller, colleague and record rely on.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { mayStep, type WarmStage } from "#features/calls/records/warm-stages.ts";
import { takesCall } from "#features/calls/voice/warm/colleague-answer.ts";
import {
  beginWarm, reduceWarm, WARM_LIMITS, type WarmAction, type WarmEvent, type WarmState,
} from "#features/calls/voice/warm/warm-transfer.ts";

const SETTINGS = { ringingMs: 30_000, talkMs: 600_000 };

interface Played {
  state: WarmState;
  actions: WarmAction[];
  stages: WarmStage[];
}

/** An event, or so many milliseconds that pass. */
type Step = WarmEvent | number;

function play(steps: Step[], settings = SETTINGS): Played {
  let nowMs = 1000;
  const played: Played = { state: beginWarm(nowMs), actions: [], stages: ["announcing"] };
  const feed = (event: WarmEvent): void => {
    const { state, actions } = reduceWarm(settings, played.state, event, nowMs);
    played.state = state;
    played.actions.push(...actions);
    for (const action of actions) if (action.kind === "stage") played.stages.push(action.stage);
  };
  for (const step of steps) {
    if (typeof step !== "number") feed(step);
    else {
      for (let passed = 0; passed < step; passed += 20) {
        nowMs += 20;
        feed({ kind: "tick" });
      }
    }
  }
  return played;
}

const kinds = ({ actions }: Played): string[] => actions
  .filter(({ kind }) => kind !== "stage")
  .map((action) => action.kind === "say" ? `say ${action.what}`
    : action.kind === "music" ? `music ${action.on}` : action.kind);

const [announced, ringing, answered, summarised, spoken, tick] =
  (["announced", "ringing", "answered", "summarised", "spoken", "tick"] as const)
    .map((kind): WarmEvent => ({ kind }));
const key = (digit: string): WarmEvent => ({ kind: "key", digit });
const ASKED = [announced!, ringing!, answered!, summarised!, spoken!, spoken!, spoken!];

test("[WT1] hold, dial, brief, ask, connect; then either hanging up ends the whole call", () => {
  const talk = play([...ASKED, key("1"), 5000, { kind: "leg_ended", cause: "far_hung_up" }]);
  assert.deepEqual(talk.stages, [
    "announcing", "dialling", "ringing", "briefing", "asking", "connected", "over",
  ]);
  assert.deepEqual(kinds(talk), [
    "music true", "dial", "say opening", "say summary", "say question", "music false", "connect",
    "end_call",
  ]);
  assert.equal(talk.state.outcome, "completed");
  const left = play([...ASKED, { kind: "answer", takes: true }, { kind: "caller_left" }]);
  assert.deepEqual([left.state.outcome, kinds(left).at(-1)], ["completed", "hang_up_leg"]);
});

test("[WT2] a failed transfer returns to the assistant with the reason", () => {
  const ends: [Step[], string][] = [
    [[announced!, { kind: "leg_ended", cause: "busy" }], "busy"],
    [[announced!, ringing!, { kind: "leg_ended", cause: "no_answer" }], "no_answer"],
    [[announced!, ringing!, { kind: "leg_ended", cause: "rejected" }], "declined"],
    [[announced!, { kind: "leg_ended", cause: "failed" }], "failed"],
    [[announced!, SETTINGS.ringingMs + WARM_LIMITS.reportMs + 40], "no_answer"],
    [[announced!, answered!, { kind: "leg_ended", cause: "far_hung_up" }], "declined"],
    [[announced!, answered!, key("2")], "declined"],
    [[announced!, answered!, { kind: "machine" }], "voicemail"],
    [[...ASKED, { kind: "answer", takes: false }], "declined"],
    [[...ASKED, WARM_LIMITS.decideMs, spoken!, WARM_LIMITS.decideMs], "timed_out"],
    [[announced!, answered!, WARM_LIMITS.briefingMs], "timed_out"],
  ];
  for (const [steps, outcome] of ends) {
    const played = play(steps);
    assert.deepEqual(
      [played.state.stage, played.state.outcome, played.actions.at(-1)],
      ["over", outcome, { kind: "resume", says: true }]);
  }
});

test("[WT3] a spoken answer counts once the question was put; keys count from the first second", () => {
  const early = play([announced!, answered!, { kind: "answer", takes: true }]);
  assert.equal(early.state.stage, "briefing");
  assert.equal(play([announced!, answered!, key("1")]).state.stage, "connected");
  assert.equal(play([announced!, answered!, key("7")]).state.stage, "briefing");
  assert.deepEqual(
    ["Yes, put her through", "no", "not now please", "Okay", "I am in a meeting, yes? no", "Hello?"]
      .map(takesCall),
    [true, false, false, true, false, null]);
});

test("[MX9] a colleague's answer is taken for what it means, not for a word that it contains", () => {
  const answers: [text: string, takes: boolean | null][] = [
    ["Sure, no problem.", true], ["That's not a problem", true], ["Yeah, why not?", true],
    ["Kein Problem", true], ["Sí, ahora mismo", true], ["Pas de problème", true], ["Ja, nu graag", true],
    ["No. Problem is, I am busy", false], ["Plus tard", false], ["Nicht jetzt", false],
    ["One moment please", null], ["Which one is it?", null], ["Give me two seconds", null],
    ["Wer ist da?", null], ["One.", true], ["Press two", false], ["1", true],
    ["Da, sigur", true], ["Nu acum", false], ["Certainly not", false], ["No", false],
  ];
  for (const [text, takes] of answers) assert.equal(takesCall(text), takes, text);
});

test("[WT4] a missing summary is not waited for, and the question is put twice", () => {
  const played = play([announced!, answered!, spoken!, WARM_LIMITS.summaryMs, spoken!]);
  assert.deepEqual([played.state.stage, kinds(played).at(-1)], ["asking", "say question"]);
  const again = play([...ASKED, WARM_LIMITS.decideMs]);
  assert.deepEqual(kinds(again).filter((kind) => kind === "say question").length, 2);
});

test("[WT5] when the held amount is spent, the talk ends", () => {
  const played = play([...ASKED, key("1"), SETTINGS.talkMs]);
  assert.deepEqual(
    played.actions.slice(-2), [{ kind: "hang_up_leg" }, { kind: "end_call", isOutOfTime: true }]);
});

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...ASKED) },
  { weight: 2, arbitrary: fc.integer({ min: 20, max: 40_000 }) },
  fc.constantFrom("1", "2", "5", "#").map(key),
  fc.boolean().map((takes): WarmEvent => ({ kind: "answer", takes })),
  fc.constantFrom<WarmEvent>(
    tick!, { kind: "machine" }, { kind: "caller_left" }, { kind: "cancelled" }),
  fc.constantFrom("busy", "no_answer", "rejected", "failed", "far_hung_up", "media_timeout")
    .map((cause): WarmEvent => ({ kind: "leg_ended", cause } as WarmEvent)),
);

test("[WT6] any order of events: steps of the table, one leg, one end, nobody left on hold", () => {
  fc.assert(fc.property(fc.array(anyStep, { maxLength: 40 }), (steps) => {
    const played = play(steps);
    for (const [at, stage] of played.stages.slice(1).entries()) {
      assert.ok(mayStep(played.stages[at]!, stage), `${played.stages}`);
    }
    const done = kinds(played);
    const count = (kind: string): number => done.filter((one) => one === kind).length;
    assert.ok(count("dial") <= 1 && count("connect") <= 1 && count("hang_up_leg") <= 1);
    assert.ok(count("music true") - count("music false") === Number(played.state.hasMusic));
    const isOver = played.state.stage === "over";
    assert.equal(played.state.outcome !== null, isOver);
    const ends = count("resume") + count("end_call");
    assert.ok(ends <= Number(isOver));
    if (!isOver) return;
    assert.ok(!played.state.hasMusic && !played.state.hasLeg);
    // A leg that was dialled is hung up, unless it has ended by itself.
    const isGone = steps.some((step) => typeof step !== "number" && step.kind === "leg_ended");
    assert.ok(count("dial") === 0 || count("hang_up_leg") === 1 || isGone);
    assert.equal(count("connect") === 1, played.stages.includes("connected"));
    assert.equal(played.state.outcome === "completed", count("connect") === 1);
    const hasLeft = steps.some((step) => typeof step !== "number" && step.kind === "caller_left");
    assert.ok(ends === 1 || hasLeft);
    // Nothing follows.
    const { actions } = reduceWarm(SETTINGS, played.state, { kind: "answered" }, 1e9);
    assert.deepEqual(actions, []);
  }), { numRuns: 2000 });
});

test("[WT7] a warm transfer ends by itself even if nobody says anything", () => {
  fc.assert(fc.property(fc.array(anyStep, { maxLength: 12 }), (steps) => {
    assert.equal(play([...steps, SETTINGS.talkMs + 40]).state.stage, "over");
  }), { numRuns: 100 });
});
