// One reply and one call's status to thousands of watchers, over WebSocket and over SSE: how long
// after the model wrote a token the last of them has it, what a delivery costs in CPU, and what a
// watcher costs in memory. Compared with uWebSockets.js alone, which publishes a text and keeps
// nothing. The watchers are a process of their own; each is an open file of it and of the server.
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { cpuSeconds, residentMb, start, stop, type Started } from "./load.ts";
import { print, printResult } from "./report.ts";
import { serve, type Serving } from "./serving.ts";
import { openFilesMax, startWatchers, type Request } from "./watching.ts";

const TOKENS = 10;
const GAP_MS = 500;
/** How long what was opened or sent takes to settle. */
const SETTLE_MS = 1500;
const FILES_BESIDES = 500;
const asked = Number(process.env.BENCH_WATCHERS ?? 10_000);
const watchers = Math.min(asked, openFilesMax() - FILES_BESIDES);
if (watchers < asked) print(`ulimit -n leaves ${watchers} of ${asked} watchers`);

interface Figures {
  deliveries: number;
  p50Ms: number;
  p99Ms: number;
  cpuUs: number;
  kib: number;
}

interface Watched {
  started: Started;
  request: Request;
  key: string;
  marker: string;
  /** Has something published to all watchers; resolves when all of it has been written. */
  publish(): Promise<void>;
}

const rounded = (value: number): number => Number(value.toFixed(2));

async function measure(
  name: string, { started, request, key, marker, publish }: Watched,
): Promise<Figures> {
  const { child: { pid }, port } = started;
  const before = residentMb(pid);
  const requests = Array.from({ length: watchers }, () => request);
  const forked = await startWatchers({ port, requests, key, marker });
  await sleep(SETTLE_MS);
  const kib = ((residentMb(pid) - before) * 1024) / watchers;
  const cpuBefore = cpuSeconds(pid);
  forked.began();
  await publish();
  await sleep(SETTLE_MS);
  const { deliveries, p50Ms, p99Ms } = await forked.report();
  const cpuUs = ((cpuSeconds(pid) - cpuBefore) * 1e6) / deliveries;
  await forked.stop();
  await sleep(SETTLE_MS);
  const figures = {
    deliveries, p50Ms: rounded(p50Ms), p99Ms: rounded(p99Ms), cpuUs: rounded(cpuUs),
    kib: rounded(kib),
  };
  print(`${name.padEnd(14)}${JSON.stringify(figures)}`);
  return figures;
}

async function reply(serving: Serving, kind: "ws" | "sse"): Promise<Watched> {
  const id = await serving.newConversation();
  const path = `/api/conversations/${id}/${kind === "ws" ? "socket" : "stream"}`;
  return {
    started: serving.started, request: { kind, path }, key: "", marker: "",
    publish: async () =>
      void await serving.call("POST", `/conversations/${id}/messages`, { message: "Hello?" }),
  };
}

/** A web call watched by its account; the end of the call is what is published. */
async function call(serving: Serving, kind: "ws" | "sse"): Promise<Watched> {
  const id = await serving.newConversation();
  const { ticket } = await serving.call("POST", `/conversations/${id}/call-ticket`);
  const base = serving.url.replace("http", "ws");
  const socket = new WebSocket(`${base}/api/conversations/${id}/call?ticket=${String(ticket)}`);
  socket.on("open", () => socket.send(JSON.stringify({
    type: "start", format: { encoding: "pcm_s16le", rate: 16_000 },
  })));
  const callId = await new Promise<number>((resolve, reject) => {
    socket.on("message", (data: Buffer, isBinary) => {
      const message = isBinary
        ? {}
        : JSON.parse(data.toString("utf8")) as { type?: string; call_id?: number };
      if (message.type === "ready") resolve(message.call_id ?? 0);
      if (message.type === "error") reject(new Error(data.toString("utf8")));
    });
    socket.on("error", reject);
  });
  await sleep(SETTLE_MS);
  return {
    started: serving.started, key: serving.key, marker: '"previous_status":"in-progress"',
    request: { kind, path: `/api/user/calls/${callId}/${kind === "ws" ? "socket" : "stream"}` },
    publish: () => {
      socket.send(JSON.stringify({ type: "end" }));
      return sleep(GAP_MS);
    },
  };
}

function published(started: Started, kind: "ws" | "sse"): Watched {
  return {
    started, request: { kind, path: `/topic/${kind}` }, key: "", marker: "",
    publish: async () => {
      for (let number = 0; number < TOKENS; number += 1) {
        await fetch(`http://127.0.0.1:${started.port}/publish`, { method: "POST", body: "{}" });
        await sleep(GAP_MS);
      }
    },
  };
}

const model = await start("ticking-model.ts", [String(TOKENS), String(GAP_MS)], {});
const bare = await start("publish.ts", [], {});
const room = String(2 * watchers);
const serving = await serve(model.port, {
  PARLEY_STREAMS_PER_CONVERSATION_MAX: room, PARLEY_STREAMS_PER_ACCOUNT_MAX: room,
});
const figures: Record<string, Figures> = {};
try {
  for (const kind of ["ws", "sse"] as const) {
    figures[`bare_${kind}`] = await measure(`bare_${kind}`, published(bare, kind));
    figures[`reply_${kind}`] = await measure(`reply_${kind}`, await reply(serving, kind));
    figures[`call_${kind}`] = await measure(`call_${kind}`, await call(serving, kind));
  }
} finally {
  await stop(bare);
  await stop(model);
  await serving.close();
}
const { reply_ws: ws, reply_sse: sse, bare_ws: bareWs, bare_sse: bareSse } = figures;
if (!ws || !sse || !bareWs || !bareSse) throw new Error("a figure is missing");
printResult("fanout", {
  watchers,
  delivery_p99_ms: Math.max(ws.p99Ms, sse.p99Ms),
  cpu_us_per_delivery: Math.max(ws.cpuUs, sse.cpuUs),
  kib_per_watcher: { websocket: ws.kib, sse: sse.kib },
  cpu_to_bare: {
    websocket: rounded(ws.cpuUs / bareWs.cpuUs), sse: rounded(sse.cpuUs / bareSse.cpuUs),
  },
  figures,
});
