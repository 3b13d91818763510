// A far end that is not heard any more, on a manual clock: what the session of its media says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#core/logger.ts";
import type { Agreed } from "#providers/carriers/sip/grammar/sdp.ts";
import { openRtpSession } from "#providers/carriers/sip/media/rtp-session.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const HOST = "127.0.0.1";
const agreed: Agreed = {
  codec: "PCMU", payloadType: 0, telephoneEvent: 101, eventRate: 8000, comfortNoise: null,
  remote: { host: HOST, port: 9, rtcpPort: null }, isHeld: false, srtp: null,
};

test("[SI113] five seconds without packets are reported, and their return; the timeout says how long it was", async (t) => {
  const system = createManualSystem();
  const sounds: boolean[] = [];
  const silences: number[] = [];
  const session = await openRtpSession({
    host: HOST, ports: null, system, log: createLogger("silent"), rate: 8000, codecs: ["PCMU"],
    mayReach: () => true, onAudio: () => undefined, onDtmf: () => undefined,
    onSound: (isComing) => sounds.push(isComing),
    onTimeout: (silentMs) => silences.push(silentMs),
  });
  t.after(() => session.close());
  system.advance(20_000);
  session.agree(agreed);
  system.advance(4000);
  assert.deepEqual(sounds, []);
  system.advance(2000);
  assert.deepEqual(sounds, [false]);
  session.agree(agreed);
  assert.deepEqual(sounds, [false, true]);
  system.advance(70_000);
  assert.deepEqual(sounds, [false, true, false]);
  const [silentMs = 0] = silences;
  assert.ok(silences.length === 1 && silentMs >= 60_000 && silentMs <= 61_000, `${silences}`);
  session.agree({ ...agreed, isHeld: true });
  system.advance(100_000);
  assert.deepEqual(sounds, [false, true, false, true], "who holds is not gone");
});
