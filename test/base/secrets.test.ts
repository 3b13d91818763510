// Secrets at rest.
import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createSecretBox, loadSecret } from "#core/secrets.ts";
import { createSystem } from "#core/system.ts";
import { testDataDir } from "#support/server.ts";

const system = createSystem();

test("[SE1] a sealed value opens under its key at its place, and nowhere else", () => {
  const box = createSecretBox("one", system);
  const sealed = box.seal("Bearer ä😀", "tools:7:headers");
  assert.equal(box.open(sealed, "tools:7:headers"), "Bearer ä😀");
  assert.notEqual(box.seal("Bearer ä😀", "tools:7:headers"), sealed, "never the same text twice");
  assert.throws(() => box.open(sealed, "tools:8:headers"));
  assert.throws(() => createSecretBox("two", system).open(sealed, "tools:7:headers"));
  const changed = sealed.slice(0, -2) + (sealed.endsWith("AA") ? "BB" : "AA");
  assert.throws(() => box.open(changed, "tools:7:headers"));
  assert.throws(() => box.open("plain", "tools:7:headers"));
});

test("[SE2] without a configured secret one is made, kept for its owner alone and found again", () => {
  const dataDir = testDataDir();
  const made = loadSecret(null, dataDir, system);
  assert.equal(loadSecret(null, dataDir, system), made);
  assert.equal(loadSecret("given", dataDir, system), "given");
  const path = join(dataDir, "secret");
  assert.equal(readFileSync(path, "utf8").trim(), made);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  rmSync(dataDir, { recursive: true });
});
