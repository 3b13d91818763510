// The rules of the house that hold by themselves: who may import what, where things are kept, and
// that names in comments, rules and settings are true.
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import ts from "typescript";
import { exportsOf, importsOf, type Import } from "./support/runner/imports.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const SOURCES = globSync(["src/**/*.{ts,tsx,js}", "workers/**/*.ts"], { cwd: ROOT })
  .filter((file) => file !== "src/client/api.d.ts");
const TESTS = globSync(["test/**/*.ts", "bench/**/*.ts"], { cwd: ROOT });
const IMPORTS = SOURCES.flatMap((file) => importsOf(ROOT, file));

const FEATURES = "src/features/";
/** A feature may import from itself and from those before it. */
const ORDER = [
  "accounts", "tools", "knowledgebases", "phone-numbers", "assistants", "leads", "calendar",
  "conversations", "calls", "campaigns", "templates", "webhooks",
];
/** Where a feature meets the edge: its routes, sockets, and what they read and write there. */
const FACE = new RegExp(`^${FEATURES}[\\w-]+/(?:.*[-/])?(?:routes?|socket|wire)\\.ts$`
  + `|^${FEATURES}(?:conversations/(?:access|message-protocol)|calls/web-call)\\.ts$`);

/** Shapes of requests, replies and sockets count as a port: there is nothing else in the file. */
const PORTS = String.raw`edge/http/exchange\.ts$|providers/(?:.*/)?port\.ts$|providers/carriers/sip/trunks/trunk\.ts$`
  + String.raw`|providers/speech/engines\.ts$|cluster/cluster\.ts$`
  + String.raw`|files/(?:files|removals)\.ts$`;

/** Room → what of src it may import, itself aside. The first that fits counts. */
const ROOMS: [room: RegExp, may: RegExp][] = [
  [/^src\/base\/core\//, /^$/],
  [/^src\/base\//, /^src\/base\/core\//],
  [/^src\/providers\//, /^src\/base\//],
  [/^src\/engine\//, new RegExp(String.raw`^src/(?:base/(?:core|events)/|${PORTS})`)],
  [/^src\/edge\/http\//, /^src\/base\//],
  [/^src\/edge\/realtime\//, /^src\/(?:base|edge\/http)\//],
  [/^src\/cluster\//, /^src\/base\//],
  [/^src\/files\//, /^src\/base\//],
  [/^src\/storage\/engines\//, /^src\/(?:base|storage|features|cluster)\//],
  [/^src\/storage\//, /^src\/(?:base|cluster|features)\/|^src\/storage\/engines\/sqlite\/database\.ts$/],
  [/^src\/features\/calls\/hosted\//, new RegExp(
    String.raw`^src/(?:base|engine|features|providers/carriers)/|^src/providers/speech/port\.ts$`
      + String.raw`|^src/(?:edge/http/(?:exchange|route|errors|answers)|cluster/cluster)\.ts$`)],
  [FACE, new RegExp(String.raw`^src/(?:base|edge|engine|features|providers)/`
    + String.raw`|^src/(?:files/files|cluster/cluster)\.ts$`)],
  [/^src\/features\//, new RegExp(String.raw`^src/(?:base|engine|features)/|^src/(?:${PORTS})`)],
  [/^src\/gateways\//, new RegExp(String.raw`^src/(?:base|edge|engine|features)/|^src/(?:${PORTS})`)],
  [/^src\/client\//, /^$/],
  [/^src\/ui\/(?:build|bundles|dashboard-texts|guides|link|pages)\.ts$/,
    /^src\/(?:base|edge)\/|^src\/ui\/translatable\.ts$/],
  [/^src\/ui\//, /^src\/client\/|^src\/base\/events\/events\.ts$|^src\/base\/core\/(?:csv|days|zones)\.ts$|^src\/features\/calls\/replica\.ts$/],
  [/^src\/cli\//, /^src\/(?:app|base|features|storage|providers\/.*port\.ts$)/],
  [/^src\/(?:main|cli)\.ts$/, /^src\/(?:app|base|cli|require-node)/],
  [/^src\/app\//, /^src\/(?!cli)/],
  [/^workers\//, /^src\/(?!app\/|cli\/|ui\/|gateways\/|edge\/|client\/)/],
];

const said = (imports: Import[]): string[] =>
  imports.map(({ file, target }) => `${file} imports ${target}`);

const roomOf = (file: string): [RegExp, RegExp] => {
  const room = ROOMS.find(([name]) => name.test(file));
  assert.ok(room, `${file} is in no room`);
  return room;
};

test("[ST1] each room imports only from the rooms in its row, and every file is in a room", () => {
  assert.ok(IMPORTS.length > 2000, String(IMPORTS.length));
  const wrong = IMPORTS.filter(({ isOwn }) => isOwn).filter(({ file, target }) => {
    const [room, may] = roomOf(file);
    return !may.test(target) && roomOf(target)[0] !== room;
  });
  assert.deepEqual(said(wrong), []);
});

test("[ST2] a feature imports only from earlier features, and no face but its own", () => {
  const featureOf = (file: string): string => file.slice(FEATURES.length).split("/")[0] ?? "";
  assert.deepEqual(
    [...new Set(SOURCES.filter((file) => file.startsWith(FEATURES)).map(featureOf))].toSorted(),
    ORDER.toSorted());
  const wrong = IMPORTS.filter(({ file, target }) => {
    if (!file.startsWith(FEATURES) || !target.startsWith(FEATURES)) return false;
    const [from, to] = [featureOf(file), featureOf(target)];
    if (FACE.test(target) && !(FACE.test(file) && from === to)) return true;
    return ORDER.indexOf(to) > ORDER.indexOf(from);
  });
  assert.deepEqual(said(wrong), []);
});

test("[ST3] exchangeable parts are imported in their own place only", () => {
  const places: Record<string, RegExp> = {
    "better-sqlite3": /^src\/storage\/engines\/sqlite\//,
    pg: /^src\/storage\/engines\/postgres\//,
    "sqlite-vec": /^src\/storage\/engines\/sqlite\//,
    "uWebSockets.js": /^src\/edge\/http\/(server|response|socket)\.ts$/,
    aws4fetch: /^src\/files\/s3\.ts$/,
    "prom-client": /^src\/base\/core\/metrics\.ts$/,
    "@nats-io/transport-node": /^src\/cluster\/wires\//,
    piscina: /^(src\/features\/tools\/threads|workers\/extractor)\.ts$/,
    preact: /^src\/ui\//,
  };
  for (const { file, target } of IMPORTS) {
    const place = Object.hasOwn(places, target) ? places[target] : undefined;
    if (place) assert.match(file, place, `${file} imports ${target}`);
  }
});

test("[ST4] only config reads the environment", () => {
  for (const file of SOURCES) {
    if (!file.startsWith("src/base/config/")) assert.ok(!read(file).includes("process.env"), file);
  }
});

test("[ST5] no import cycle, types included, spans two folders", () => {
  const next = new Map<string, string[]>();
  for (const { file, target, isOwn } of IMPORTS) {
    if (isOwn) next.set(file, [...next.get(file) ?? [], target]);
  }
  const reaches = (from: string): Set<string> => {
    const seen = new Set<string>();
    const open = [...next.get(from) ?? []];
    for (let file = open.pop(); file !== undefined; file = open.pop()) {
      if (seen.has(file)) continue;
      seen.add(file);
      open.push(...next.get(file) ?? []);
    }
    return seen;
  };
  const reached = new Map(SOURCES.map((file) => [file, reaches(file)]));
  const circles = [...reached].flatMap(([file, targets]) => [...targets]
    .filter((target) => file < target && dirname(target) !== dirname(file)
      && reached.get(target)?.has(file))
    .map((target) => `${file} and ${target} import each other`));
  assert.deepEqual(circles, []);
});

test("[ST6] every file a comment names exists", () => {
  const names = new Set([...SOURCES, ...TESTS, ...globSync(["data/*", "scripts/*"], { cwd: ROOT })]
    .flatMap((file) => {
      const parts = file.split("/");
      return parts.map((_, index) => parts.slice(index).join("/"));
    }));
  const wrong = [...SOURCES, ...TESTS].flatMap((file) => {
    const comments = read(file).match(/^\s*(?:\/\/|\/?\*).*$/gm)?.join("\n") ?? "";
    return [...comments.matchAll(/(?<![\w.*<-])[\w-]+(?:\/[\w-]+)*(?:\.test)?\.tsx?\b/g)]
      .filter(([name]) => !names.has(name)).map(([name]) => `${file} names ${name}`);
  });
  assert.deepEqual(wrong, []);
});

test("[ST29] a file said to use another imports it", () => {
  const wrong = SOURCES.flatMap((file) => {
    const head = /^(?:\/\/.*\n)*/.exec(read(file))?.[0].replaceAll(/\n\/\/ ?/g, " ") ?? "";
    const users = [...head.matchAll(/\b(?:Used|Made|Opened|Mounted) by ((?:(?:,? and |, )?[\w/-]+\.tsx?\b)+)/g)]
      .flatMap(([, list = ""]) => list.match(/[\w/-]+\.tsx?\b/g) ?? []);
    return users.filter((user) => !SOURCES.some((other) =>
      `/${other}`.endsWith(`/${user}`) && importsOf(ROOT, other).some(({ target }) => target === file)))
      .map((user) => `${file} is not used by ${user}`);
  });
  assert.deepEqual(wrong, []);
});

test("[ST7] every rule has a test, and every test's rule is listed", () => {
  const rules = [...read("test/rules.md").matchAll(/^\s*-\s+\**([A-Z]{2,3}\d+)\b/gm)]
    .map(([, id = ""]) => id);
  const tested = TESTS.flatMap((file) =>
    [...read(file).matchAll(/["'`]((?:\[[A-Z]{2,3}\d+\] ?)+)/g)]
      .flatMap(([, names = ""]) => names.match(/[A-Z]{2,3}\d+/g) ?? []));
  assert.deepEqual([...new Set(rules)].filter((id) => !tested.includes(id)), [], "rules no test names");
  assert.deepEqual([...new Set(tested)].filter((id) => !rules.includes(id)), [], "tests of no rule");
  assert.equal(new Set(rules).size, rules.length, "a rule stands twice");
});

test("[ST8] imports use ./ downwards and the room's name elsewhere", () => {
  const wrong = [...SOURCES, ...TESTS].flatMap((file) => importsOf(ROOT, file))
    .filter(({ file, name, target }) => name.startsWith("../")
      || (name.startsWith("#") && target.startsWith(`${dirname(file)}/`)))
    .map(({ file, name }) => `${file} imports ${name}`);
  assert.deepEqual(wrong, []);
});

test("[ST12] every export is used by another file; one used only by tests is also used in its own file", () => {
  const users = new Map<string, Set<string>>();
  const scripts = globSync("scripts/*.ts", { cwd: ROOT });
  const imports = [...SOURCES, ...scripts, ...TESTS].flatMap((file) => importsOf(ROOT, file));
  for (const { file, target, names } of imports) {
    for (const name of names) {
      const key = `${target} exports ${name}`;
      users.set(key, (users.get(key) ?? new Set()).add(file));
    }
  }
  // The typed client is for programs that are not here; a .d.ts says what its script exports.
  const files = SOURCES.filter((file) => !/^src\/client\/client\.ts$|\.d\.ts$/.test(file));
  const wrong = files.flatMap((file) => {
    const text = read(file);
    return exportsOf(text).filter((name) => {
      const by = [name, "*"].flatMap((one) => [...users.get(`${file} exports ${one}`) ?? []])
        .filter((user) => user !== file);
      if (by.length === 0) return true;
      const isOwn = (text.match(new RegExp(`(?<!\\.)\\b${name}\\b`, "g"))?.length ?? 0) > 1;
      return !isOwn && by.every((user) => TESTS.includes(user));
    }).map((name) => `${file} exports ${name}`);
  });
  assert.deepEqual(wrong, []);
});

test("[ST13] a comment begins with its subject: not with Of, What of, By or Whose", () => {
  const wrong = [...SOURCES, ...TESTS].flatMap((file) => read(file).split("\n")
    .filter((line) => /^\s*(?:\/\/|\/?\*{1,2}|\{\/\*)\s*(?:Of|What of|By|Whose)\b/.test(line))
    .map((line) => `${file}: ${line.trim()}`));
  assert.deepEqual(wrong, []);
});

/** Lines of a template or a pattern, counted from 0. */
function linesOfTexts(source: ts.SourceFile): Set<number> {
  const lines = new Set<number>();
  const visit = (node: ts.Node): void => {
    if (ts.isTemplateLiteral(node) || ts.isRegularExpressionLiteral(node)) {
      const last = source.getLineAndCharacterOfPosition(node.getEnd()).line;
      let { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
      for (; line <= last; line += 1) lines.add(line);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return lines;
}

test("[ST27] a line of code has at most 100 characters, except for texts, templates and patterns", () => {
  const long = globSync("{src,workers,scripts,bench,test}/**/*.{ts,tsx}", { cwd: ROOT })
    .filter((file) => !file.endsWith(".d.ts"))
    .flatMap((file) => {
      const text = readFileSync(join(ROOT, file), "utf8");
      const lines = text.split("\n").flatMap((line, index) =>
        line.length > 100 && !/["']|:\/\//.test(line.replace(/^ *(\/\/|\*).*/, "")) ? [index] : []);
      if (lines.length === 0) return [];
      const texts = linesOfTexts(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
      return lines.filter((line) => !texts.has(line)).map((line) => `${file}:${line + 1}`);
    });
  assert.deepEqual(long, []);
});

test("[ST14] only one place knows where the program's own files are", () => {
  // A file beside a source is not beside what it is bundled into.
  const wrong = SOURCES.filter((file) => /(?<!createRequire\()import\.meta\.(?:dirname|filename|url)/.test(read(file)))
    .filter((file) => !["src/base/core/program.ts", "src/client/generate.ts"].includes(file));
  assert.deepEqual(wrong, []);
});

test("[ST24] no pool thread blocks while it is idle", () => {
  const pools = [...SOURCES, ...TESTS].filter((file) => file !== "test/structure.test.ts")
    .map((file) => ({ file, text: read(file) }))
    .filter(({ text }) => text.includes("new Piscina("));
  assert.ok(pools.length > 0);
  for (const { file, text } of pools) {
    const count = (what: string): number => text.split(what).length - 1;
    assert.equal(count('atomics: "disabled"'), count("new Piscina("), file);
  }
});

test("[ST25] migrations are numbered consecutively", () => {
  const numbers = globSync("src/storage/schema/*.sql", { cwd: ROOT })
    .map((file) => Number(/(\d{4})_\w+\.sql$/.exec(file)?.[1])).toSorted((a, b) => a - b);
  assert.ok(numbers.length > 0 && existsSync(join(ROOT, "src/storage/schema")));
  assert.deepEqual(numbers, numbers.map((_, index) => index + 1));
});

test("[ST26] what is built elsewhere has its licence and script beside it, and each file is under 20 MB", () => {
  const folders = globSync("third-party/*", { cwd: ROOT });
  assert.ok(folders.length > 0);
  for (const folder of folders) {
    for (const name of ["LICENSE", "README.md", "build.sh"]) {
      assert.ok(existsSync(join(ROOT, folder, name)), `${folder}/${name}`);
    }
    const bytes = globSync(`${folder}/**/*`, { cwd: ROOT })
      .reduce((sum, file) => sum + statSync(join(ROOT, file)).size, 0);
    assert.ok(bytes < 20e6, `${folder}: ${bytes}`);
  }
});
