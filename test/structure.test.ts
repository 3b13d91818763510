// Who may import what, as the design says: features in the middle, exchangeable edges around them.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "..");

interface Import {
  file: string;
  /** Path from the root for the project's own files, else the package's name. */
  target: string;
}

const imports: Import[] = ["src/**/*.ts", "workers/*.ts"].flatMap((pattern) =>
  globSync(pattern, { cwd: ROOT }).flatMap((file) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    return [...text.matchAll(/^(?:import|export)\b[^"';=]*?\bfrom\s+"([^"]+)"/gm)].map(([, name = ""]) => ({
      file,
      target: name.startsWith(".")
        ? relative(ROOT, join(ROOT, dirname(file), name))
        : name,
    }));
  }));

/** Folder → the folders of src it may import from, itself aside. */
const ALLOWED: Record<string, RegExp> = {
  "src/core/": /^src\/core\//,
  "src/audio/": /^src\/(audio|core)\//,
  "src/events/": /^src\/(core|events)\//,
  "src/providers/": /^src\/(audio|core|providers)\//,
  "src/engine/": /^src\/(core|engine|events\/events|providers\/models\/port)/,
  "src/http/": /^src\/(core|events|http)\//,
  "src/mcp/": /^src\/(core|http|mcp)\//,
  "src/outbound/": /^src\/(core|outbound)\//,
  "src/realtime/": /^src\/(core|events|http|realtime)\//,
  // Faces of conversations in other people's protocols.
  "src/protocols/": new RegExp("^src/((core|events|http|protocols|realtime)/|assistants/assistants\\.ts"
    + "|conversations/(access|answering|conversations|records)\\.ts|engine/history\\.ts"
    + "|providers/models/port\\.ts)"),
};

test("[ST1] the edges import no feature, the core nothing but itself", () => {
  assert.ok(imports.length > 200);
  for (const [folder, allowed] of Object.entries(ALLOWED)) {
    for (const { file, target } of imports) {
      if (!file.startsWith(folder) || !target.startsWith("src/")) continue;
      assert.match(target, allowed, `${file} imports ${target}`);
    }
  }
});

const FEATURE = new RegExp("^src/(accounts|tools|knowledgebases|calendar|assistants|leads|calls"
  + "|conversations|campaigns|phone-numbers|webhooks)/");

test("[ST2] no feature reaches into storage, no storage into a face", () => {
  for (const { file, target } of imports) {
    if (FEATURE.test(file)) assert.doesNotMatch(target, /^src\/storage\//, file);
    if (file.startsWith("src/storage/")) {
      assert.doesNotMatch(target, /^src\/(http|realtime|providers)\/|routes\.ts$/, file);
    }
  }
});

test("[ST3] what is swapped as a whole is imported in its own place only", () => {
  const places: Record<string, RegExp> = {
    "better-sqlite3": /^src\/storage\/sqlite\//,
    "uWebSockets.js": /^src\/http\/(server|response|socket)\.ts$/,
    "prom-client": /^src\/core\/metrics\.ts$/,
    piscina: /^(src\/features|workers\/extractor)\.ts$/,
  };
  for (const { file, target } of imports) {
    const place = Object.hasOwn(places, target) ? places[target] : undefined;
    if (place) assert.match(file, place, `${file} imports ${target}`);
  }
});

test("[ST24] no thread of a pool stands still while it is idle", () => {
  const pools = globSync(["src/**/*.ts", "workers/**/*.ts", "bench/**/*.ts"], { cwd: ROOT })
    .map((file) => ({ file, text: readFileSync(join(ROOT, file), "utf8") }))
    .filter(({ text }) => text.includes("new Piscina("));
  assert.ok(pools.length > 0);
  for (const { file, text } of pools) {
    const count = (what: string): number => text.split(what).length - 1;
    assert.equal(count('atomics: "disabled"'), count("new Piscina("), file);
  }
});

test("[ST25] migrations are numbered one after another", () => {
  const numbers = globSync("src/storage/**/migrations/*.sql", { cwd: ROOT })
    .map((file) => Number(/(\d{4})_\w+\.sql$/.exec(file)?.[1])).toSorted((a, b) => a - b);
  assert.deepEqual(numbers, numbers.map((_, index) => index + 1));
});

test("[ST4] only config.ts reads the environment", () => {
  for (const file of globSync("src/**/*.ts", { cwd: ROOT })) {
    const text = readFileSync(join(ROOT, file), "utf8");
    if (file !== "src/config.ts") assert.ok(!text.includes("process.env"), file);
  }
});
