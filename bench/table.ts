// `npm run bench -- table` runs the benchmarks that have a row in `ROWS` and prints one table, with
// the day, the machine and its load; `node bench/table.ts resume idle` runs only those two.
import { spawnSync } from "node:child_process";
import { loadavg } from "node:os";
import { join } from "node:path";
import { machine, print } from "./report.ts";

type Result = Record<string, unknown>;

/** The number at a path of nested members; NaN if there is none. */
function numberAt(result: Result, ...path: string[]): number {
  let value: unknown = result;
  for (const name of path) value = (value as Result | undefined)?.[name];
  return Number(value ?? NaN);
}

const ms = (value: number): string => `${value} ms`;

/** The rows printed from each benchmark's last line; one may have several. */
const ROWS: [bench: string, what: string, show: (result: Result) => string][] = [
  ["messages", "first token added, 1 client: Parley; fetch; `ai`", (result) =>
    ["", "_fetch", "_ai"].map((of) => ms(numberAt(result, `added_first_token_ms${of}`))).join("; ")],
  ["messages", "replies a second, 1 client: Parley; fetch; `ai`", (result) =>
    ["parley_1", "fetch_1", "ai_1"].map((of) => numberAt(result, "medians", of, "perSecond")).join("; ")],
  ["messages", "replies a second, 32 clients: Parley; fetch; `ai`", (result) =>
    ["parley_32", "fetch_32", "ai_32"].map((of) => numberAt(result, "medians", of, "perSecond")).join("; ")],
  ["messages", "CPU of a reply, 32 clients: Parley; fetch; `ai`", (result) =>
    ["parley_32", "fetch_32", "ai_32"]
      .map((of) => ms(numberAt(result, "medians", of, "cpuMsPerReply"))).join("; ")],
  ["messages", "resident with 32 and 256 clients", (result) =>
    ["parley_32", "parley_256"].map((of) => `${numberAt(result, "medians", of, "residentMb")} MB`).join("; ")],
  ["charging", "durable charges a second, 512 in flight, to one transaction each", (result) =>
    `${numberAt(result, "medians", "thread_512", "perSecond")}, ${numberAt(result, "ratio_thread_512_to_plain")} ×`],
  ["charging", "CPU of a charge, 512 in flight, the client's with it", (result) =>
    `${numberAt(result, "medians", "thread_512", "cpuUs")} µs`],
  ["start", "from nothing to listening; its CPU; resident at rest", (result) =>
    `${ms(numberAt(result, "listening_ms"))}; ${ms(numberAt(result, "cpu_ms"))}; ${numberAt(result, "idle_mb")} MB`],
  ["resume", "the last 1,000 events over SSE (p50)", (result) => ms(numberAt(result, "resume_ms"))],
  ["idle", "an open conversation in memory", (result) =>
    `${numberAt(result, "resident_kib_each")} KiB`],
  ["streams", "replies of 30 tokens a second at once, 99 % within 20 ms", (result) =>
    String(numberAt(result, "streams"))],
  ["fanout", "watchers; the latest 1 % of deliveries; CPU of one", (result) =>
    `${numberAt(result, "watchers")}; ${ms(numberAt(result, "delivery_p99_ms"))}; ${numberAt(result, "cpu_us_per_delivery")} µs`],
  ["tools", "added to an endpoint's own time by a tool's call (p50)", (result) =>
    ms(numberAt(result, "added_p50_ms"))],
];

function run(name: string): Result | null {
  const { status, stdout } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`)], {
    stdio: ["ignore", "pipe", "inherit"], encoding: "utf8",
  });
  const last = stdout.trimEnd().split("\n").at(-1) ?? "";
  return status === 0 && last.startsWith("{") ? JSON.parse(last) as Result : null;
}

const asked = process.argv.slice(2);
const { cpu, cores, node } = machine();
print(`${new Date().toISOString().slice(0, 10)}, ${cores} × ${cpu}, Node ${node}\n`);
print("| Command | What | Figure | Others at work |\n|---|---|---|---|");
const results = new Map<string, { result: Result | null; load: string }>();
for (const [name, what, show] of ROWS) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const load = (loadavg()[0] ?? NaN).toFixed(1);
  const shown = results.get(name) ?? { result: run(name), load };
  results.set(name, shown);
  const figure = shown.result ? show(shown.result) : "failed";
  print(`| \`npm run bench -- ${name}\` | ${what} | ${figure} | ${shown.load} |`);
}
