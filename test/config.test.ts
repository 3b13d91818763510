// Settings: read from the environment, all mistakes at once, secrets from files.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { describeSettings, readConfig } from "../src/config.ts";
import { testDataDir } from "./support/server.ts";

test("[CF1] an empty environment gives the documented defaults", () => {
  const outcome = readConfig({});
  assert.equal(outcome.kind, "ok");
  if (outcome.kind !== "ok") return;
  assert.equal(outcome.config.PARLEY_HOST, "127.0.0.1");
  assert.equal(outcome.config.PARLEY_PORT, 8080);
  assert.equal(outcome.config.PARLEY_DATA_DIR, "data/local");
  assert.equal(outcome.config.PARLEY_RATE_LIMITS, true);
  assert.deepEqual(outcome.warnings, []);
});

test("[CF2] every mistake is reported at once, and the program exits with 78", () => {
  const environment = {
    PARLEY_PORT: "eighty", PARLEY_LOG_LEVEL: "loud", PARLEY_MODEL_URL: "here",
  };
  const outcome = readConfig(environment);
  assert.equal(outcome.kind, "invalid");
  if (outcome.kind === "invalid") assert.equal(outcome.problems.length, 3);
  const main = new URL("../src/main.ts", import.meta.url).pathname;
  const ran = spawnSync(process.execPath, [main], { env: environment, encoding: "utf8" });
  assert.equal(ran.status, 78);
  for (const name of Object.keys(environment)) assert.match(ran.stderr, new RegExp(name));
});

test("[CF3] unknown PARLEY_ names are warned about, with the name that was meant", () => {
  const meant = {
    PARLEY_MODEL_LINK: "PARLEY_MODEL_", PARLEY_PROT: "PARLEY_PORT", PARLEY_DATADIR: "PARLEY_DATA_DIR",
    PARLEY_RATELIMIT: "PARLEY_RATE_LIMITS",
  };
  for (const [name, hint] of Object.entries(meant)) {
    const outcome = readConfig({ [name]: "x" });
    assert.equal(outcome.kind, "ok");
    assert.equal(outcome.warnings.length, 1);
    assert.ok(outcome.warnings[0]?.includes(`${name}; did you mean ${hint}`), outcome.warnings[0]);
  }
  assert.deepEqual(readConfig({ PARLEY_ZZZ: "x" }).warnings, ["unknown setting PARLEY_ZZZ"]);
});

test("[CF4] a secret may come from a file, but not from both", () => {
  const dir = testDataDir();
  const file = join(dir, "key");
  writeFileSync(file, "from-a-file\n");
  const outcome = readConfig({ PARLEY_MODEL_KEY_FILE: file });
  assert.equal(outcome.kind === "ok" && outcome.config.PARLEY_MODEL_KEY, "from-a-file");
  const both = readConfig({ PARLEY_MODEL_KEY_FILE: file, PARLEY_MODEL_KEY: "x" });
  assert.equal(both.kind, "invalid");
  rmSync(dir, { recursive: true });
});

test("[CF5] every setting has a description", () => {
  for (const { name, description } of describeSettings()) assert.ok(description.length > 10, name);
});
