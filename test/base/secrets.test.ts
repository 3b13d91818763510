// Secrets at rest.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { createSecretBox, loadSecret } from "#core/secrets.ts";
import { createSystem } from "#core/system.ts";
import { testDataDir } from "#support/server.ts";

const system = createSystem();

test("[SE1] a sealed value opens only under its key and for its place", () => {
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

test("[SE2] without a configured secret one is generated, readable by its owner only, and reused", () => {
  const dataDir = testDataDir();
  const made = loadSecret(null, dataDir, system);
  assert.equal(loadSecret(null, dataDir, system), made);
  assert.equal(loadSecret("given", dataDir, system), "given");
  const path = join(dataDir, "secret");
  assert.equal(readFileSync(path, "utf8").trim(), made);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  rmSync(dataDir, { recursive: true });
});

test("[SE64] processes that generate a secret at once share one; an empty one is reported, not used", async () => {
  const dataDir = testDataDir();
  const program = `
    import { loadSecret } from "#core/secrets.ts";
    import { createSystem } from "#core/system.ts";
    process.stdout.write(loadSecret(null, process.env.DATA_DIR, createSystem()));`;
  const made = await Promise.all(Array.from({ length: 6 }, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath, ["--input-type=module", "-e", program],
      { env: { ...process.env, DATA_DIR: dataDir } });
    return stdout;
  }));
  assert.equal(made[0]?.length, 43);
  assert.equal(new Set(made).size, 1);
  assert.deepEqual(readdirSync(dataDir), ["secret"]);
  // A machine that lost its power while an earlier program wrote it.
  writeFileSync(join(dataDir, "secret"), "\n");
  assert.throws(() => loadSecret(null, dataDir, system), /secret is empty: restore it/);
  rmSync(dataDir, { recursive: true });
});
