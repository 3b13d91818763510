// Parley compared with other people's servers: the baselines in bench/baseline/ and those in
// bench/peers/, which has a lock file of its own and is installed in a temporary folder on first
// use, never with Parley. All have the same model and load generator, and share one table.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { file } from "./load.ts";
import { baseline, direct, inTurn, parley, peer, ratio, stopAll } from "./message-servers.ts";
import { print, printResult } from "./report.ts";

const PEERS = ["mastra"];
const clients = [1, 32];
const seconds = Number(process.env.BENCH_SECONDS ?? 3);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);

const folder = join(tmpdir(), "parley-bench-peers");
cpSync(file("peers"), folder, { recursive: true });
if (!existsSync(`${folder}/node_modules`)) {
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: folder, stdio: "inherit",
  });
}
const subjects = [
  direct(), await parley(), await baseline("fetch"), await baseline("ai"),
  ...await Promise.all(PEERS.map((name) => peer(name, folder))),
];
const medians = await inTurn(subjects, { clients, seconds, rounds });
await stopAll(subjects);

const base = medians.parley_32?.perSecond ?? NaN;
const added = (name: string): number => ratio(
  (medians[`${name}_1`]?.firstP50Ms ?? NaN) - (medians.direct_1?.firstP50Ms ?? NaN), 1);
print("| Server | first token added, 1 client | replies a second, 32 clients | to Parley's "
  + "| CPU of a reply | resident |\n|---|---|---|---|---|---|");
const table = subjects.slice(1).map(({ name }) => {
  const { perSecond = NaN, cpuMsPerReply = NaN, residentMb = NaN } = medians[`${name}_32`] ?? {};
  const row = {
    name, added_first_token_ms: added(name),
    per_second: perSecond, to_parley: ratio(perSecond, base),
    cpu_ms: ratio(cpuMsPerReply, 1), resident_mb: residentMb,
  };
  print(`| ${name} | ${row.added_first_token_ms} ms | ${perSecond} | ${row.to_parley} `
    + `| ${row.cpu_ms} ms | ${residentMb} MB |`);
  return row;
});
printResult("peers", { rounds, seconds, table });
