// Replay to a client that reconnects: how long the last 1,000 events of a conversation take from
// its request to the last of them, over SSE and over WebSocket. Compared with a plain answer of the
// same server, the conversation's history, which is one read and one JSON text.
import { connect } from "node:net";
import { start, stop } from "./load.ts";
import { median, percentile, print, printResult } from "./report.ts";
import { serve } from "./serving.ts";

const EVENTS = 1000;
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 100);
/** A turn is two messages. */
const TURNS = EVENTS / 2;

const rounded = (value: number): number => Number(value.toFixed(2));

/** Milliseconds until `end` has come. */
function timed(port: number, head: string, end: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1").setNoDelay(true);
    let tail = "";
    let began = 0;
    socket.on("connect", () => {
      began = performance.now();
      socket.write(`${head}\r\nHost: bench\r\n\r\n`);
    });
    socket.on("data", (bytes) => {
      tail = tail.slice(-end.length) + bytes.toString("latin1");
      if (!tail.includes(end)) return;
      resolve(performance.now() - began);
      socket.resetAndDestroy();
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`closed before the last event: ${tail}`)));
  });
}

const model = await start("../test/support/vendors/scripted-model.ts", ["--tokens", "20"], {});
const serving = await serve(model.port, { PARLEY_CONVERSATION_MESSAGES_MAX: "2000" });
const { port } = serving.started;
const path = `/conversations/${await serving.newConversation()}`;
for (let turn = 0; turn < TURNS; turn += 1) {
  await serving.call("POST", `${path}/messages`, { message: `When are you open? ${turn}` });
}
// The greeting is the first event of all and is not requested.
const newest = EVENTS + 1;
const UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
  + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
const ways = {
  sse: [`GET /api${path}/stream?after=1 HTTP/1.1`, `id: ${newest}\nevent: message_added`],
  websocket: [`GET /api${path}/socket?after=1 HTTP/1.1\r\n${UPGRADE}`, `"id":"${newest}",`],
  history: [`GET /api${path} HTTP/1.1\r\nConnection: close`, `open? ${TURNS - 1}`],
} as const;
const figures: Record<string, { p50Ms: number; p99Ms: number }> = {};
for (const [name, [head, end]] of Object.entries(ways)) {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await timed(port, head, end));
  figures[name] = { p50Ms: rounded(median(times)), p99Ms: rounded(percentile(times, 99)) };
  print(`${name.padEnd(10)}${JSON.stringify(figures[name])}`);
}
await stop(model);
await serving.close();
printResult("resume", { events: EVENTS, resume_ms: figures.sse?.p50Ms, rounds: ROUNDS, figures });
