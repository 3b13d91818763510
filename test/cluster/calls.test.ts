// Calls that another node has: steered and listened to from here.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { shareCalls } from "#cluster/calls.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { nextTurn } from "#core/system.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createMemoryWires } from "#support/nodes/memory-wires.ts";

const log = createLogger("silent");
const awake = setInterval(() => undefined, 1000);
after(() => clearInterval(awake));

const CALL = 5;
const ANA = { id: "key:1", name: "Ana" };

function createWorld() {
  const system = createManualSystem();
  const wires = createMemoryWires(system);
  const owned = new Map([[CALL, 1]]);
  const done: string[] = [];
  const listeners = new Set<{ onAudio(pcm: Int16Array, rate: number): void; over(): void }>();
  let withdraw = (): void => undefined;
  let person: { onAudio(pcm: Int16Array): void; over(): void } | null = null;
  const moved = (_callId: number, what: string, holder: typeof ANA | null) => {
    done.push(what);
    const state = holder ? "person" as const : "assistant" as const;
    return { kind: "moved" as const, desk: { state, holder, reason: null, at: 5 } };
  };
  const nodes = [1, 2].map((nodeId) => {
    const wire = wires.connect();
    const has = (callId: number): boolean => owned.get(callId) === nodeId;
    const did = (callId: number, what: string): boolean => has(callId) && done.push(what) > 0;
    const shared = shareCalls({
        wire, system, log,
        isElsewhere: async (callId) => owned.has(callId) && !has(callId),
        own: {
          control: {
            say: (callId, text) => did(callId, `say ${text}`),
            mute: (callId, on) => did(callId, `mute ${on}`),
            end: async (callId) => did(callId, "end"),
          },
          persons: {
            whisper: async (callId, by, text) => did(callId, `${by.name} whispers ${text}`),
            takeOver: async (callId, by, isAlone) => has(callId)
              ? moved(callId, `${by.name} takes it ${isAlone}`, by) : { kind: "not_live" },
            handBack: async (callId, by) => has(callId)
              ? moved(callId, `${by.name} hands it back`, null) : { kind: "not_live" },
            speak: (callId, authorId, onAudio, over) => {
              if (!has(callId)) return null;
              if (authorId !== ANA.id) return "not_theirs";
              person = { onAudio, over };
              return {
                write: (pcm) => void done.push(`said ${pcm.join(" ")}`),
                close: () => void done.push("closed"),
              };
            },
          },
          listen: (callId, onAudio, over) => {
            if (!has(callId)) return null;
            const listener = { onAudio, over };
            listeners.add(listener);
            return () => void listeners.delete(listener);
          },
        },
    });
    if (has(CALL)) withdraw = shared.offer(CALL);
    return { shared };
  });
  const speak = async (...samples: number[]): Promise<void> => {
    for (const { onAudio } of listeners) onAudio(Int16Array.from(samples), 8000);
    for (let turn = 0; turn < 8; turn += 1) await nextTurn();
  };
  const [here, there] = nodes;
  assert.ok(here && there);
  const over = (): void => {
    owned.delete(CALL);
    withdraw();
  };
  return { system, wires, over, done, listeners, speak, here, there, person: () => person };
}

test("[WI40] say, mute and end reach a call on any node; an ended call says so, an unreachable one is 503", async () => {
  const { wires, over, done, here, there } = createWorld();
  for (const { shared } of [here, there]) {
    assert.deepEqual(
      [await shared.say(CALL, "Hi"), await shared.mute(CALL, true), await shared.end(CALL)],
      [true, true, true]);
    assert.equal(await shared.say(6, "Hi"), false);
  }
  assert.deepEqual(done, ["say Hi", "mute true", "end", "say Hi", "mute true", "end"]);
  wires.stop();
  assert.equal(await here.shared.say(CALL, "own"), true);
  await assert.rejects(there.shared.say(CALL, "?"), (error) =>
    error instanceof Fault && error.status === 503 && error.retryAfterS === 1);
  wires.start();
  over();
  assert.equal(await there.shared.end(CALL), false);
});

test("[WI41] a listener at another node hears the call's frames until it leaves or the call ends", async () => {
  const { system, listeners, over, speak, there } = createWorld();
  const heard: number[] = [];
  const overs: string[] = [];
  const begin = there.shared.listen(CALL, (pcm, rate) => heard.push(rate, ...pcm),
    () => void overs.push("over"));
  for (let turn = 0; turn < 4; turn += 1) await nextTurn();
  await speak(1);
  const stop = await begin;
  assert.ok(stop);
  await speak(2, -3);
  assert.deepEqual(heard, [8000, 2, -3]);
  for (let count = 0; count < 5; count += 1) {
    system.advance(LIMITS.liveAskMsMax);
    await speak(4);
  }
  assert.equal(listeners.size, 1, "asked for again and again");
  stop();
  system.advance(LIMITS.liveSentMs);
  await speak(5);
  assert.deepEqual([listeners.size, heard.filter((one) => one === 4).length], [0, 5]);

  const again = there.shared.listen(CALL, () => undefined, () => void overs.push("over"));
  for (let turn = 0; turn < 4; turn += 1) await nextTurn();
  await speak(1);
  assert.ok(await again);
  for (const listener of listeners) listener.over();
  over();
  await speak();
  assert.deepEqual(overs, ["over"]);
  assert.equal(await there.shared.listen(CALL, () => undefined, () => undefined), null);
});

test("[WI44] a person takes part in another node's call: commands arrive, and sound passes both ways until either ends", async () => {
  const { system, done, person, there, over } = createWorld();
  const { persons } = there.shared;
  assert.equal(await persons.whisper(CALL, ANA, "discount"), true);
  assert.equal(await persons.whisper(6, ANA, "nobody"), false);
  const taken = await persons.takeOver(CALL, ANA, true);
  assert.deepEqual(taken, {
    kind: "moved", desk: { state: "person", holder: ANA, reason: null, at: 5 },
  });
  assert.deepEqual(await persons.takeOver(6, ANA, true), { kind: "not_live" });
  const heard: number[] = [];
  const overs: string[] = [];
  const begin = () => persons.speak(
    CALL, ANA.id, (pcm) => void heard.push(...pcm), () => void overs.push("over"));
  assert.equal(await persons.speak(CALL, "key:2", () => undefined, () => undefined), "not_theirs");
  assert.equal(await persons.speak(6, ANA.id, () => undefined, () => undefined), null);
  const first = await begin();
  assert.ok(first && first !== "not_theirs");
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 8; turn += 1) await nextTurn();
  };
  first.write(Int16Array.from([1, -2]));
  person()?.onAudio(Int16Array.from([7, -8]));
  await settle();
  assert.deepEqual(heard, [7, -8]);
  first.close();
  await settle();
  assert.deepEqual(done, ["Ana whispers discount", "Ana takes it true", "said 1 -2", "closed"]);
  const second = await begin();
  assert.ok(second && second !== "not_theirs");
  // While it asks, it is there.
  for (let asked = 0; asked < 5; asked += 1) {
    system.advance(LIMITS.liveAskMsMax);
    await settle();
  }
  second.write(Int16Array.from([3]));
  await settle();
  assert.deepEqual(done.slice(4), ["said 3"]);
  assert.equal((await persons.handBack(CALL, ANA)).kind, "moved");
  person()?.over();
  await settle();
  assert.deepEqual(overs, ["over"]);
  over();
});

test("[WI44] a node that dies takes its microphone out of the call", async () => {
  const { system, wires, done, there } = createWorld();
  const speaking = await there.shared.persons.speak(
    CALL, ANA.id, () => undefined, () => undefined);
  assert.ok(speaking && speaking !== "not_theirs");
  wires.stop();
  for (let beat = 0; beat < 5; beat += 1) {
    system.advance(LIMITS.liveAskMsMax);
    for (let turn = 0; turn < 8; turn += 1) await nextTurn();
  }
  assert.deepEqual(done, ["closed"]);
});
