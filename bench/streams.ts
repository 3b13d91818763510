// How many replies of 30 tokens a second there may be at once until the latest 1 % of the tokens
// are more than 20 ms later than without Parley: doubled until they are, then bisected. A token's
// lateness is the time from the model's write to its arrival; the same readers first ask the model
// directly. Then the same for a relay that stores nothing (bench/baseline/): the libraries' limit.
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSeconds, start, stop, type Started } from "./load.ts";
import { print, printResult } from "./report.ts";
import { serve } from "./serving.ts";
import { openFilesMax, startWatchers, type Received, type Request } from "./watching.ts";

const GAP_MS = 33;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 5);
const ADDED_MS_MAX = 20;
const FIRST = 125;
/** A reply takes two open files of the server: those of its client and of its model. */
const most = Math.min(
  Number(process.env.BENCH_STREAMS ?? 8000), Math.floor(openFilesMax() / 2) - 500);
const STEPS_BETWEEN = 3;
/** Until this has passed, opening disturbs the figures; no step begins after `TOTAL_MS`. */
const OPENING_MS = 1500;
const TOTAL_MS = 3 * 60_000;

const tokens = Math.ceil(((SECONDS + 10) * 1000) / GAP_MS);
const model = await start("ticking-model.ts", [String(tokens), String(GAP_MS)], {});
const serving = await serve(model.port, {
  PARLEY_TURNS_MAX: "20000", PARLEY_MODEL_CONNECTIONS_MAX: "20000",
});
const relay = await start("baseline/relay.ts", ["", `http://127.0.0.1:${model.port}/v1`], {});

interface Subject {
  started: Started;
  /** The path of a conversation of its own. */
  open(): Promise<string>;
}

const subjects: Record<"parley" | "relay", Subject> = {
  parley: {
    started: serving.started,
    open: async () => `/api/conversations/${await serving.newConversation()}`,
  },
  relay: { started: relay, open: async () => "/conversations/any" },
};

async function read(port: number, requests: Request[], token: string): Promise<Received> {
  const forked = await startWatchers({ port, requests, key: "", marker: "", token });
  await sleep(OPENING_MS);
  await forked.report();
  await sleep(SECONDS * 1000);
  const received = await forked.report();
  await forked.stop();
  return received;
}

interface Step {
  streams: number;
  addedMs: number;
  p99Ms: number;
  perSecond: number;
  cpuUs: number;
}

async function step({ started, open }: Subject, streams: number): Promise<Step> {
  const requests: Request[] = [];
  await Promise.all(Array.from({ length: 16 }, async () => {
    while (requests.length < streams) {
      requests.push({ kind: "post", path: `${await open()}/messages` });
    }
  }));
  requests.length = streams;
  const straight = requests.map((): Request => ({ kind: "post", path: "/v1/chat/completions" }));
  const direct = await read(model.port, straight, '"content":"');
  const { pid } = started.child;
  const cpu = cpuSeconds(pid);
  const through = await read(started.port, requests, '"text":"');
  const figures = {
    streams,
    addedMs: Number((through.p99Ms - direct.p99Ms).toFixed(1)),
    p99Ms: Number(through.p99Ms.toFixed(1)),
    perSecond: Math.round(through.deliveries / SECONDS),
    cpuUs: Math.round(((cpuSeconds(pid) - cpu) * 1e6) / through.deliveries),
  };
  print(JSON.stringify(figures));
  return figures;
}

async function mostHeld(
  name: keyof typeof subjects,
): Promise<{ streams: number; held: Step | null }> {
  const began = performance.now();
  const hasTime = (): boolean => performance.now() - began < TOTAL_MS;
  let held: Step | null = null;
  let [good, bad] = [0, 0];
  const take = async (streams: number): Promise<void> => {
    print(name);
    const figures = await step(subjects[name], streams);
    if (figures.addedMs <= ADDED_MS_MAX) [held, good] = [figures, streams];
    else bad = streams;
  };
  for (let streams = FIRST; bad === 0 && streams <= most && hasTime(); streams *= 2) {
    await take(streams);
  }
  for (let left = STEPS_BETWEEN; bad > 0 && left > 0 && hasTime(); left -= 1) {
    await take(Math.round((good + bad) / 2));
  }
  return { streams: good, held };
}

const { streams, held } = await mostHeld("parley");
const bare = await mostHeld("relay");
await stop(relay);
await stop(model);
await serving.close();
printResult("streams", {
  streams, added_p99_ms_max: ADDED_MS_MAX, tokens_per_second: 30, held,
  relay_streams: bare.streams, relay_held: bare.held,
});
