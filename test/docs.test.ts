// The documentation is true where a program can tell: the table of settings, links, and the names
// of files, folders and settings.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { settingsMarkdown } from "#cli/settings.ts";
import { SETTINGS } from "#config/settings.ts";
import { PASSING_TYPES } from "#events/bus.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const DOCS = ["README.md", ...globSync("docs/*.md", { cwd: ROOT })];
const FILES = globSync(["{src,workers,test,bench,data,docs}/**/*", "*.{md,json,js}"], { cwd: ROOT });

/** A variable of Asterisk's dialplan has the form of a setting. */
const ASTERISK_VARIABLE = "PARLEY_TRANSFER";

/** As a heading's address is made: small letters, no marks, - for spaces. */
const anchorOf = (heading: string): string =>
  heading.toLowerCase().replaceAll(/[^\w\s-]/g, "").trim().replaceAll(/\s/g, "-");

const anchorsOf = (file: string): string[] =>
  [...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));

test("[ST9] the settings table in the docs is the one the program prints", () => {
  assert.ok(read("docs/configuration.md").includes(`\n\n${settingsMarkdown()}\n\n`),
    "run: npm run -s parley -- settings --markdown");
});

test("[ST10] links in the docs work, and the files, folders and settings they name exist", () => {
  const known = new Set(FILES.flatMap((file) => {
    const parts = file.split("/");
    return parts.map((_, index) => parts.slice(index).join("/"));
  }));
  const wrong = DOCS.flatMap((file) => {
    const text = read(file);
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link)
      .filter((link) => !/^https?:/.test(link))
      .filter((link) => {
        const [path = "", anchor] = link.split("#");
        const target = path === "" ? file : join(dirname(file), path);
        return !existsSync(join(ROOT, target))
          || (anchor !== undefined && !anchorsOf(target).includes(anchor));
      });
    const files = [...text.matchAll(/(?<![\w./:*<-])[\w-]+(?:[\w./-]*\w)?\.tsx?\b/g)]
      .map(([name]) => name).filter((name) => !known.has(name));
    const folders = [...text.matchAll(/(?<![\w./:-])(?:src|workers|test|bench|data)\/[\w./-]*\w/g)]
      .map(([path]) => path)
      .filter((path) => path !== "data/local" && !existsSync(join(ROOT, path)));
    const settings = [...text.matchAll(/\bPARLEY_[A-Z_]+[A-Z]\b(?!_\*)/g)].map(([name]) => name)
      .filter((name) => name !== ASTERISK_VARIABLE)
      .filter((name) => !Object.hasOwn(SETTINGS, name)
        && !Object.hasOwn(SETTINGS, name.replace(/_FILE$/, "")));
    return [...links, ...files, ...folders, ...settings].map((name) => `${file} names ${name}`);
  });
  assert.deepEqual(wrong, []);
});

test("[ST111] the docs name every frame of the streams that is in no log", () => {
  const made = globSync("src/{edge,features}/**/*.ts", { cwd: ROOT }).flatMap((file) =>
    [...read(file).matchAll(/(?:makeFrame\(|answer\(|ok\(|return \[)"(\w+)",/g)]
      .map(([, type = ""]) => type));
  assert.ok(made.includes("connected") && made.includes("send_result"));
  const text = DOCS.map(read).join("\n");
  const frames = new Set([...made, ...PASSING_TYPES]);
  assert.deepEqual([...frames].filter((type) => !text.includes(`\`${type}\``)), []);
});

test("[ST30] every installed package has a line saying why", () => {
  const text = read("docs/CONTRIBUTING.md");
  const named = ["package.json", "scripts/bundled/package.json"].flatMap((file) => {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read(file)) as
      Record<string, object | undefined>;
    return Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
  });
  const types = (name: string): boolean => name.startsWith("@types/");
  assert.deepEqual(named.filter((name) => !types(name) && !text.includes(name)), []);
});

test("[ST11] the README has at most 150 lines", () => {
  assert.ok(read("README.md").split("\n").length <= 151);
});

test("[ST28] everything the image is built from is let into its build, whatever folder is added", () => {
  /** Tests, benchmarks and what looks after the tree: nothing that runs or is packed. */
  const leftOut = [".ci", ".dockerignore", ".gitignore", ".oxlintrc.json", "Dockerfile", "bench", "compose.yaml", "test"];
  const letIn = [...read(".dockerignore").matchAll(/^!(.+)$/gm)].map(([, name = ""]) => name);
  const tracked = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" });
  const top = new Set(tracked.trim().split("\n").map((file) => file.split("/")[0] ?? ""));
  assert.deepEqual([...letIn, ...leftOut].toSorted(), [...top].toSorted());
  const { bin } = JSON.parse(read("package.json")) as { bin: { parley: string } };
  assert.ok(read("Dockerfile").includes(`/node_modules/parley/${bin.parley}"`));
});
