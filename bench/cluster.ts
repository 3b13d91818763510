// Nodes over PostgreSQL and NATS, in real processes: replies a second, CPU per reply and time to
// first token with 1, 2 and 3 nodes, compared in the same rounds with one over a file; how much
// later a watcher at another node has a token; how long until a killed node's replies are closed.
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { load, overFile, overPostgres, post, type Figures, type Side } from "./cluster-world.ts";
import { start, stop } from "./load.ts";
import { median, percentile, print, printResult } from "./report.ts";
import { startWatchers, type Received } from "./watching.ts";

const CLIENTS = Number(process.env.BENCH_CLIENTS ?? 32);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 4);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const DEATHS = Number(process.env.BENCH_DEATHS ?? 5);
const WATCHED_MS = 10_000;
const WATCHERS = 50;
const TOKEN_MS = 33;
/** A dead node's replies are closed when its lease expires, at the latest. */
const CLOSED_MS_MAX = 60_000;
const HELD_REPLIES = 10;

const loads: number[] = [];
const noteLoad = (): void => void loads.push(Number((loadavg()[0] ?? 0).toFixed(1)));

const medianOf = (all: Figures[]): Figures => {
  const of = (name: keyof Figures): number => median(all.map((one) => one[name]));
  return {
    perSecond: of("perSecond"), firstP50Ms: of("firstP50Ms"), firstP99Ms: of("firstP99Ms"),
    nodeCpuMs: of("nodeCpuMs"), databaseCpuMs: of("databaseCpuMs"),
  };
};

/** Sides of 1, 2 and 3 nodes and one over a file, in turn within each round. */
async function replies(): Promise<Record<string, Figures>> {
  const model = await start("../test/support/vendors/scripted-model.ts", ["--tokens", "20"], {});
  const [single, cluster] = [
    await overFile(model.port, CLIENTS), await overPostgres(model.port, CLIENTS),
  ];
  await cluster.grow();
  await cluster.grow();
  const sides: Side[] = [single, ...[1, 2, 3].map((count) => (
    { ...cluster, name: `nodes_${count}`, nodes: cluster.nodes.slice(0, count) }))];
  // One account's commands run one after another, however many nodes there are.
  for (const count of [1, 3]) {
    sides.push({
      ...cluster, name: `nodes_${count}_one_account`, nodes: cluster.nodes.slice(0, count),
      assistants: cluster.assistants.slice(0, 1),
    });
  }
  const seen = new Map<string, Figures[]>(sides.map(({ name }) => [name, []]));
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const side of sides) {
      const figures = await load(side, CLIENTS, SECONDS);
      noteLoad();
      // The first round warms up.
      if (round > 0) seen.get(side.name)?.push(figures);
    }
  }
  const medians = Object.fromEntries([...seen].map(([name, all]) => [name, medianOf(all)]));
  for (const [name, one] of Object.entries(medians)) print(`${name} ${JSON.stringify(one)}`);
  await single.close();
  await cluster.close();
  await stop(model);
  return medians;
}

/** The same reply, watched at the node that writes it and at another one. */
async function watching() {
  const tokens = Math.round((WATCHED_MS * 3) / TOKEN_MS);
  const model = await start("ticking-model.ts", [String(tokens), String(TOKEN_MS)], {});
  const cluster = await overPostgres(model.port, 1);
  const [writer, other] = [cluster.nodes[0], await cluster.grow()];
  if (!writer) throw new Error("there is no node");
  const ids: string[] = [];
  for (let count = 0; count < WATCHERS; count += 1) {
    const { conversation_id: id } = await post(
      writer, "/conversations", { assistant_id: cluster.assistants[0] });
    ids.push(String(id));
  }
  const open = (port: number) => startWatchers({
    port, key: "", marker: "",
    requests: ids.map((id) => ({ kind: "sse", path: `/api/conversations/${id}/stream` })),
  });
  const [own, others] = [await open(writer.port), await open(other.port)];
  const writing = await startWatchers({
    port: writer.port, key: "", marker: "",
    requests: ids.map((id) => ({ kind: "post", path: `/api/conversations/${id}/messages` })),
  });
  await sleep(2000);
  await Promise.all([own.report(), others.report()]);
  await sleep(WATCHED_MS);
  noteLoad();
  const [here, there] = await Promise.all([own.report(), others.report()]);
  await Promise.all([own.stop(), others.stop(), writing.stop()]);
  await cluster.close();
  await stop(model);
  const added = (read: (received: Received) => number): number =>
    Number((read(there) - read(here)).toFixed(2));
  return {
    watchers: WATCHERS, frames: there.deliveries,
    own_p50_ms: Number(here.p50Ms.toFixed(2)),
    own_p99_ms: Number(here.p99Ms.toFixed(2)),
    added_p50_ms: added(({ p50Ms }) => p50Ms), added_p99_ms: added(({ p99Ms }) => p99Ms),
  };
}

/** The time from SIGKILL of a node with replies in flight until none of them is open. */
async function deaths(hasNats: boolean, times: number) {
  const model = await start("ticking-model.ts", ["100000", "200"], {});
  const cluster = await overPostgres(model.port, 1, hasNats);
  const tookMs: number[] = [];
  for (let death = 0; death < times; death += 1) {
    const doomed = await cluster.grow();
    const requests = await Promise.all(Array.from({ length: HELD_REPLIES }, async () => {
      const { conversation_id: id } = await post(
        doomed, "/conversations", { assistant_id: cluster.assistants[0] });
      return { kind: "post" as const, path: `/api/conversations/${String(id)}/messages` };
    }));
    const asking = await startWatchers({ port: doomed.port, requests, key: "", marker: "" });
    // A random moment between two heartbeats.
    await sleep(2000 + Math.random() * 2000);
    const open = async (): Promise<number> => Number((await cluster.query<{ open: string }>(
      "SELECT count(*) AS open FROM turns WHERE state = 'open'"))[0]?.open);
    if (await open() !== HELD_REPLIES) throw new Error("replies are not under way");
    const killedMs = performance.now();
    doomed.child.kill("SIGKILL");
    while (await open() > 0) {
      if (performance.now() - killedMs > CLOSED_MS_MAX) throw new Error("nobody closed them");
      await sleep(20);
    }
    tookMs.push(performance.now() - killedMs);
    noteLoad();
    await asking.stop();
  }
  await cluster.close();
  await stop(model);
  const seconds = (percent: number): number =>
    Number((percentile(tookMs, percent) / 1000).toFixed(1));
  return { times, p50_s: seconds(50), max_s: seconds(100) };
}

const medians = await replies();
const watched = await watching();
print(JSON.stringify(watched));
const withNats = await deaths(true, DEATHS);
print(JSON.stringify(withNats));
const withoutNats = await deaths(false, Math.min(DEATHS, 2));
const rateOf = (one: string, other: string): number =>
  Number(((medians[one]?.perSecond ?? 0) / (medians[other]?.perSecond ?? 1)).toFixed(2));
printResult("cluster", {
  clients: CLIENTS, seconds: SECONDS, rounds: ROUNDS, medians,
  rate_1_to_file: rateOf("nodes_1", "file"),
  watching: watched, dead_with_nats: withNats, dead_without_nats: withoutNats,
  load_average: { least: Math.min(...loads), median: median(loads), most: Math.max(...loads) },
});
