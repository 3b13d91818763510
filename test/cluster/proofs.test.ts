// A handful of the suite's own files over PostgreSQL, and with three nodes behind a door that takes
// another for each request: the short forms of what `npm run prove` runs as a whole.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { isOverPostgres, RUN_PID, withoutPostgres } from "#support/engines.ts";
import { withoutNats } from "#support/nodes/nats.ts";

const PROVE = join(import.meta.dirname, "../../scripts/prove.ts");

/** Its files load what the runner has prepared for those of the suite, where it has. */
const prepared = process.env.PREPARED_DATABASE === undefined
  ? [] : ["--import", join(import.meta.dirname, "../support/runner/prepared.js")];

/** Ends with 0 where nothing failed; its tests share the PostgreSQL of this run. */
async function prove(what: "postgres" | "nodes"): Promise<void> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, [...prepared, PROVE, what, "short"], {
    env: { ...env, RUN_PID: String(RUN_PID) }, stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (out += text));
  }
  const [code] = await once(child, "close") as [number | null];
  assert.equal(code, 0, out);
  assert.match(out, /^# pass [1-9]/m);
}

const skip = withoutPostgres || (isOverPostgres && "it is run by the whole proof");

test("[ND41] money, its notices and lists work over PostgreSQL as over a file", { skip }, () =>
  prove("postgres"));

test("[ND42] replies, money and streams work across three nodes, whichever is asked", {
  skip: skip || withoutNats,
}, () => prove("nodes"));
