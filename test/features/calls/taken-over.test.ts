// A person takes a call over in the moment its assistant is about to have a colleague called.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallingOptions, LiveCall } from "#features/calls/live-call.ts";
import { beginWarm } from "#features/calls/warm.ts";
import type { WarmTool } from "#features/calls/functions.ts";
import type { BeginTransferOutcome } from "#features/calls/records/records.ts";

const TOOL: WarmTool = {
  type: "warm_call_transfer", to: "+15550177", isRaw: false, phoneNumberId: null, shown: null,
  musicGain: null, timezone: null,
  texts: { hold: "Hold.", opening: "A call.", connected: "Go on.", summary: "Sum up." },
};
const BEGUN: BeginTransferOutcome = {
  kind: "begun", number: 1, secondsMax: 60, afterwardsS: 60, recordingFile: null, events: [],
};

test("[CR465] taking over a call about to dial a colleague cancels the dial, and the transfer has failed", async () => {
  for (const isAlone of [true, false]) {
    const begun = Promise.withResolvers<BeginTransferOutcome>();
    const sent: string[] = [];
    const steps: unknown[] = [];
    const options = {
      calls: {
        findById: async () => ({}),
        beginTransfer: () => begun.promise,
        stepTransfer: async (_: unknown, step: object) => void steps.push(step),
      },
      colleagueLineOf: async () => ({ carrier: "loopback", to: TOOL.to, rate: 16_000 }),
      voiceOf: () => ({
        engines: {}, settings: { phrases: { takeCall: "Yes?", notConnected: "No." } },
      }),
      carrierRateOf: () => 0,
      summarise: async () => "",
      recordings: { folder: "/" },
      media: { send: ({ kind }: { kind: string }) => void sent.push(kind) },
      system: { now: () => 1 },
    } as unknown as CallingOptions;
    const call = {
      id: 1, assistant: { settings: { ringing_time: 30 } }, variables: {}, given: {}, history: [],
      spoken: { current: "en" }, language: { name: "English" }, answered: () => 1, person: null,
    } as unknown as LiveCall;
    const asked = beginWarm(options, call, TOOL);
    await new Promise(setImmediate);
    call.person = { author: { id: "1", name: "Ana" }, isAlone, microphone: null, absence: null };
    begun.resolve(BEGUN);
    const why = await asked;
    assert.equal(sent[0], isAlone ? undefined : "warm");
    assert.equal(why, isAlone ? "Somebody else has taken the call over." : null);
    assert.deepEqual(steps, isAlone
      ? [{ number: 1, stage: "over", outcome: "failed", failureReason: why, at: 1 }] : []);
  }
});
