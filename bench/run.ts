// `npm run bench` runs every benchmark, each in a process of its own, one after the other;
// `npm run bench -- charging` runs one, `npm run bench -- table` those of the table of the docs.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

const HELPERS = new Set([
  "run.ts", "report.ts", "ears.ts", "sip-calls.ts", "load.ts", "voice-default.ts", "voice-phone.ts",
  "voice-server.ts", "voice-thread.ts", "voice-timer.ts",
  "heard-gaps.ts", "message-servers.ts", "slow-tcp.ts", "threads.ts",
  "cluster-world.ts", "path-probe.ts", "reports-fill.ts", "publish.ts", "serving.ts", "ticking-model.ts",
  "watching.ts", "bucket.ts",
]);
const names = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(".ts") && !HELPERS.has(file))
  .map((file) => file.slice(0, -3));

/** Run only by name: they run the others again, or install packages that are not here. */
const ON_REQUEST = new Set(["table", "peers"]);

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`no benchmark ${unknown.join(", ")}; there are: ${names.join(", ")}\n`);
  process.exit(64);
}
const all = names.filter((name) => !ON_REQUEST.has(name));
for (const name of asked.length > 0 ? asked : all) {
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`)], {
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}
