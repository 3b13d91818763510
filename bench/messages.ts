// Widget-billed, durable messages through the real server process: time to first token, replies a
// second, CPU per reply and memory at 1, 32 and 256 conversations. Compared, in turn within each
// round, with the model server asked directly and three of bench/baseline/: Fastify with fetch and
// with the `ai` package, both with SQLite at the same durability, and a relay that stores nothing.
import type { Figures } from "./load.ts";
import { baseline, direct, inTurn, parley, ratio, relay, stopAll } from "./message-servers.ts";
import { printResult } from "./report.ts";

const clients = (process.env.BENCH_CLIENTS ?? "1,32,256").split(",").map(Number);
const seconds = Number(process.env.BENCH_SECONDS ?? 3);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);

const subjects = [
  direct(), await parley(), await baseline("fetch"), await baseline("ai"), await relay(),
];
const medians = await inTurn(subjects, { clients, seconds, rounds });
const ok = await stopAll(subjects);

const figure = (name: string, read: (figures: Figures) => number): number =>
  medians[name] ? read(medians[name]) : NaN;
const rate = (name: string): number => figure(name, (value) => value.perSecond);
const cpu = (name: string): number => figure(name, (value) => value.cpuMsPerReply);
const first = (name: string): number => figure(name, (value) => value.firstP50Ms);
printResult("messages", {
  rounds, seconds, ledger_ok: ok, medians,
  added_first_token_ms: ratio(first("parley_1") - first("direct_1"), 1),
  added_first_token_ms_fetch: ratio(first("fetch_1") - first("direct_1"), 1),
  added_first_token_ms_ai: ratio(first("ai_1") - first("direct_1"), 1),
  rate_1_to_fetch: ratio(rate("parley_1"), rate("fetch_1")),
  rate_32_to_fetch: ratio(rate("parley_32"), rate("fetch_32")),
  rate_32_to_ai: ratio(rate("parley_32"), rate("ai_32")),
  rate_1_relay_to_fetch: ratio(rate("relay_1"), rate("fetch_1")),
  rate_32_relay_to_fetch: ratio(rate("relay_32"), rate("fetch_32")),
  cpu_32_fetch_to_parley: ratio(cpu("fetch_32"), cpu("parley_32")),
  cpu_32_ai_to_parley: ratio(cpu("ai_32"), cpu("parley_32")),
});
