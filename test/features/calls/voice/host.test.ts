// The calls of the media thread, by the messages it takes and posts, on a virtual clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMediaClock } from "#features/calls/voice/clock.ts";
import { createHost } from "#features/calls/voice/host.ts";
import type { FromMedia } from "#features/calls/voice/protocol.ts";
import { createLogger } from "#core/logger.ts";
import {
  createLoopbackSynthesizer, createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "#providers/speech/loopback.ts";
import { VOICE_SETTINGS } from "#support/calls-by-clock.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const RATE = 16_000;
const FRAME = RATE / 50;

/** A web call that is answered, with all that it posted. */
function answeredCall({ recognitionMs }: { recognitionMs: number }) {
  const system = createManualSystem();
  const posted: FromMedia[] = [];
  const host = createHost({
    synthesizer: () => createLoopbackSynthesizer({ system, synthesisMs: 0 }),
    transcriber: () => createLoopbackTranscriber({ system, recognitionMs }),
    speechToSpeech: () => assert.fail("no model speaks by itself"),
    vad: loopbackVad, level: () => (pcm) => pcm, noiseFilter: null, turnEnds: null,
    ambience: () => assert.fail("there is no ambience"),
    beeps: () => ({ push: () => undefined }),
    recorder: () => assert.fail("nothing is recorded"),
    carriers: [], peers: null,
    clock: createMediaClock(system), system, log: createLogger("silent"),
    post: (message) => void posted.push(message),
  });
  host.receive({
    kind: "open", callId: 1,
    setup: {
      settings: { ...VOICE_SETTINGS, waitForCustomer: true }, durationMaxMs: 3_600_000, greeting: "",
      engines: { synthesizer: "loopback", transcriber: "loopback" },
      leg: { kind: "remote", rate: RATE, hasLine: false }, realtime: null, recordingPath: null,
    },
  });
  host.receive({ kind: "leg", callId: 1, event: { kind: "answered" } });
  return { host, system, posted };
}

test("[VL323] a person's last words are on record even if the caller hangs up before they are recognised", () => {
  const { host, system, posted } = answeredCall({ recognitionMs: 1000 });
  host.receive({
    kind: "person_joined", callId: 1, author: { id: "key:1", name: "Ana" }, isAlone: true,
    ears: "loopback",
  });
  const words = loopbackAudio("Goodbye and thanks for calling.", RATE);
  for (let at = 0; at < words.length; at += FRAME) {
    host.receive({ kind: "person_audio", callId: 1, pcm: words.slice(at, at + FRAME) });
    system.advance(20);
  }
  host.receive({ kind: "person_left", callId: 1, wasLost: false });
  system.advance(100);
  host.receive({ kind: "leg", callId: 1, event: { kind: "ended", cause: "far_hung_up" } });
  system.advance(5000);
  const last = posted.filter(({ kind }) => kind === "said" || kind === "over");
  assert.deepEqual(last.map(({ kind }) => kind), ["said", "over"]);
  const [said] = last;
  assert.ok(said?.kind === "said");
  assert.deepEqual([said.said.speaker, said.said.author?.name], ["operator", "Ana"]);
  assert.match(said.said.text, /^Goodbye and thanks/);
});
