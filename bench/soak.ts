// Mixed work for a minute, or as long as BENCH_SECONDS says (3600 is the long form): conversations,
// messages, watchers that come and go, stopped and abandoned replies, web calls. Memory is sampled
// all the while; at the end, when all clients have left, nothing may be open: no stream, turn or
// call, and no more files or sockets than before; the size of the database's log is read, and the
// ledger verified.
import { execFileSync } from "node:child_process";
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { file, residentMb, start, stop } from "./load.ts";
import { print, printResult } from "./report.ts";
import { serve } from "./serving.ts";

const SECONDS = Number(process.env.BENCH_SECONDS ?? 60);
const SAMPLE_MS = Math.max(1000, (SECONDS * 1000) / 120);
/** Concurrent clients of each kind. */
const AT_ONCE = 4;
const SETTLE_STEPS = 45;
/** The first share of the samples is warm-up: compiled code, caches, pages of the database. */
const WARM_SHARE = 0.4;
const GAUGES = ["sse_streams", "ws_connections", "turns_in_flight", "calls_live"];

const model = await start("ticking-model.ts", ["10", "20"], {});
const serving = await serve(model.port, {});
const { pid } = serving.started.child;
const openFiles = (): number => readdirSync(`/proc/${pid}/fd`).length;
const atRest = openFiles();
const until = Date.now() + SECONDS * 1000;
const done = { messages: 0, streams: 0, abandoned: 0, stopped: 0, sockets: 0, calls: 0, failed: 0 };

async function repeat(kind: keyof typeof done, run: (id: string) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (Date.now() < until) {
      try {
        await run(await serving.newConversation());
        done[kind] += 1;
      } catch (error) {
        done.failed += 1;
        if (done.failed === 1) print(`the first failure, ${kind}: ${String(error)}`);
        await sleep(100);
      }
    }
  }));
}

const say = (id: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${serving.url}/api/conversations/${id}/messages`, {
    method: "POST", body: JSON.stringify({ message: "When are you open?" }),
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    ...(signal ? { signal } : {}),
  });

const socketOf = (path: string): Promise<WebSocket> => new Promise((resolve, reject) => {
  const socket = new WebSocket(`${serving.url.replace("http", "ws")}/api${path}`);
  socket.once("open", () => resolve(socket)).once("error", reject);
});

const work = [
  repeat("messages", async (id) => {
    for (let number = 0; number < 5; number += 1) await (await say(id)).text();
  }),
  repeat("streams", async (id) => {
    const leave = new AbortController();
    await fetch(`${serving.url}/api/conversations/${id}/stream`, { signal: leave.signal });
    await (await say(id)).text();
    leave.abort();
  }),
  repeat("abandoned", async (id) => {
    const leave = new AbortController();
    await say(id, leave.signal);
    leave.abort();
    await sleep(50);
  }),
  repeat("stopped", async (id) => {
    const answer = await say(id);
    await serving.call("POST", `/conversations/${id}/stop`, {});
    await answer.text();
  }),
  repeat("sockets", async (id) => {
    const socket = await socketOf(`/conversations/${id}/socket`);
    socket.send(JSON.stringify({ type: "send", message: "Hello?", request_id: "1" }));
    await sleep(400);
    socket.terminate();
  }),
  repeat("calls", async (id) => {
    const { ticket } = await serving.call("POST", `/conversations/${id}/call-ticket`);
    const socket = await socketOf(`/conversations/${id}/call?ticket=${String(ticket)}`);
    socket.on("error", () => undefined);
    socket.send(JSON.stringify({ type: "start", format: { encoding: "pcm_s16le", rate: 16_000 } }));
    await sleep(1500);
    socket.send(JSON.stringify({ type: "end" }));
    await sleep(100);
    socket.terminate();
  }),
];

const samples: { s: number; mb: number }[] = [];
const began = Date.now();
let walBytesMax = 0;
while (Date.now() < until) {
  await sleep(SAMPLE_MS);
  samples.push({ s: (Date.now() - began) / 1000, mb: residentMb(pid) });
  for (const name of readdirSync(serving.dataDir).filter((one) => one.endsWith("-wal"))) {
    walBytesMax = Math.max(walBytesMax, statSync(join(serving.dataDir, name)).size);
  }
}
await Promise.all(work);
// Kept-alive connections are closed when no request has come.
for (let left = SETTLE_STEPS; left > 0 && openFiles() > atRest; left -= 1) await sleep(SAMPLE_MS);

/** The growth of memory after the warm-up in megabytes an hour, by least squares. */
function slope(): number {
  const late = samples.slice(Math.floor(samples.length * WARM_SHARE));
  const mean = (read: (sample: { s: number; mb: number }) => number): number =>
    late.reduce((sum, sample) => sum + read(sample), 0) / late.length;
  const [s, mb] = [mean((one) => one.s), mean((one) => one.mb)];
  const rise = mean((one) => (one.s - s) * (one.mb - mb));
  return Math.round((rise / mean((one) => (one.s - s) ** 2)) * 3600);
}

const metrics = await (await fetch(`${serving.url}/metrics`)).text();
const open = Object.fromEntries(GAUGES.map((name) =>
  [name, Number(new RegExp(`^parley_${name} (\\S+)`, "m").exec(metrics)?.[1] ?? NaN)]));
const filesMore = openFiles() - atRest;
const ended = residentMb(pid);
const beganStopMs = performance.now();
await stop(serving.started);
const stopMs = Math.round(performance.now() - beganStopMs);
await stop(model);
const verified = execFileSync(process.execPath, [
  file("../scripts/parley.js"), "ledger", "verify", "--json",
], { env: { PARLEY_DATA_DIR: serving.dataDir }, encoding: "utf8" });
rmSync(serving.dataDir, { recursive: true });
printResult("soak", {
  seconds: SECONDS, done, resident_mb: { first: samples[0]?.mb, last: samples.at(-1)?.mb, ended },
  slope_mb_per_hour: slope(), wal_mb_max: Number((walBytesMax / 2 ** 20).toFixed(1)),
  open, files_more: filesMore, stop_ms: stopMs,
  ledger_ok: (JSON.parse(verified) as { ok: boolean }).ok,
});
