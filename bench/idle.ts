// Open conversations in which nothing happens: what each costs in memory. They are opened over the
// wire; the growth of the server's memory at rest, after a first `WARM` of them, is their cost.
import { setTimeout as sleep } from "node:timers/promises";
import { residentMb, start, stop } from "./load.ts";
import { print, printResult } from "./report.ts";
import { serve } from "./serving.ts";

const CONVERSATIONS = Number(process.env.BENCH_CONVERSATIONS ?? 100_000);
/** After so many the database's bounded cache is full; it is no conversation's cost. */
const WARM = 20_000;
const AT_ONCE = 64;
/** How long it takes until garbage from opening is collected. */
const SETTLE_MS = 5000;

const model = await start("../test/support/vendors/scripted-model.ts", [], {});
const serving = await serve(model.port, {});
const open = async (count: number): Promise<void> => {
  let left = count;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while ((left -= 1) >= 0) await serving.newConversation();
  }));
};
/** The heap in use, by the server's own metrics, and the process's resident memory, in MiB. */
async function memory(): Promise<{ heap: number; resident: number }> {
  await sleep(SETTLE_MS);
  const text = await (await fetch(`${serving.url}/metrics`)).text();
  const [, bytes] = /^parley_nodejs_heap_size_used_bytes (\S+)/m.exec(text) ?? [];
  return { heap: Number(bytes) / 2 ** 20, resident: residentMb(serving.started.child.pid) };
}
await open(WARM);
const before = await memory();
const beganMs = performance.now();
await open(CONVERSATIONS);
const perSecond = Math.round(CONVERSATIONS / ((performance.now() - beganMs) / 1000));
const after = await memory();
await stop(model);
await serving.close();
const kib = (read: (memory: { heap: number; resident: number }) => number): number =>
  Number((((read(after) - read(before)) * 1024) / CONVERSATIONS).toFixed(3));
print(`before ${JSON.stringify(before)}, after ${JSON.stringify(after)}, ${perSecond} opened a second`);
printResult("idle", {
  conversations: CONVERSATIONS, opened_per_second: perSecond,
  resident_kib_each: kib(({ resident }) => resident), heap_kib_each: kib(({ heap }) => heap),
});
