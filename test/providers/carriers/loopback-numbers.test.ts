// The far ends of the loopback carrier that its numbers stand for, on a virtual clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openCarrier } from "#providers/carriers/loopback-numbers.ts";
import { loopbackAudio } from "#providers/speech/loopback.ts";
import { createManualSystem } from "#support/manual-clock.ts";

test("[CR594] a try call's callee that gets no greeting says hello all the same", () => {
  const system = createManualSystem();
  const carrier = openCarrier({
    system, engines: { speak: (text, rate, ready) => ready(loopbackAudio(text, rate)) },
  });
  for (const lines of [undefined, ["Anybody there?"]]) {
    const said: string[] = [];
    const leg = carrier.dial({
      rate: 8000, to: "+12025550100", from: null, ringingMs: 30_000, ...lines && { lines },
    }, (event) => {
      if (event.kind === "words" && event.isFinal) said.push(event.text);
    });
    system.advance(2000);
    const listen = (ms: number): void => {
      for (let sentMs = 0; sentMs < ms; sentMs += 20) leg.send(new Int16Array(160));
    };
    listen(4900);
    assert.deepEqual(said, []);
    listen(4000);
    assert.deepEqual(said, lines ?? ["Hello. When are you open?"]);
  }
});
