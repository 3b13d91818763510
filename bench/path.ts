// One reply at a time through the real server: how many milliseconds each part of its path takes,
// from the client's first byte to the end of the answer. Compared with what one commit alone costs
// on the same disk, made as the server makes it and at the least (a page of zeros and fdatasync).
import Database from "better-sqlite3";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Connection, file, start, stop } from "./load.ts";
import type { Stamps } from "./path-probe.ts";
import { percentile, print, printResult } from "./report.ts";
import { serve } from "./serving.ts";
import { nowMicros } from "./watching.ts";

const REPLIES = Number(process.env.BENCH_REPLIES ?? 1500);
const WARM = 500;
/** As many as in a widget's conversation; the history grows with each. */
const PER_CONVERSATION = 20;
const MESSAGE = JSON.stringify({ message: "When are you open?" });

/** Each part lasts from the first of the two stamps to the second. */
const PARTS: [part: string, from: string, to: string][] = [
  ["request to the server's callback", "sent", "accepted"],
  ["headers and body", "accepted", "body in"],
  ["checks, outlook read, begin handed to the writer", "body in", "turns.begin sent"],
  ["hop to the writer", "turns.begin sent", "turns.begin begun"],
  ["begin: statements", "turns.begin begun", "turns.begin commit"],
  ["begin: COMMIT with its fsync", "turns.begin commit", "turns.begin commit_done"],
  ["hop back", "turns.begin commit_done", "turns.begin answered"],
  ["first word written out", "turns.begin answered", "first word out"],
  ["first word reaches the client", "first word out", "first"],
  ["first word to complete handed to the writer", "first word out", "turns.complete sent"],
  ["hop to the writer", "turns.complete sent", "turns.complete begun"],
  ["complete: statements", "turns.complete begun", "turns.complete commit"],
  ["complete: COMMIT with its fsync", "turns.complete commit", "turns.complete commit_done"],
  ["hop back", "turns.complete commit_done", "turns.complete answered"],
  ["end written out", "turns.complete answered", "end written"],
  ["end reaches the client", "end written", "whole"],
  ["beside it: body in to the model asked", "body in", "model asked"],
  ["beside it: model's first byte", "model asked", "model began"],
  ["in all: first word", "sent", "first"],
  ["in all: whole reply", "sent", "whole"],
];

const rounded = (value: number): number => Number(value.toFixed(3));

/** Milliseconds; the tenth percentile is what the part takes on an otherwise idle machine. */
interface Figures {
  p10: number;
  p50: number;
  p95: number;
}

function figuresOf(times: number[]): Figures {
  // A reply during which something else was written may lack stamps.
  const known = times.filter((time) => !Number.isNaN(time));
  const [p10, p50, p95] = [10, 50, 95].map((percent) => rounded(percentile(known, percent))) as
    [number, number, number];
  return { p10, p50, p95 };
}

function show(name: string, { p10, p50, p95 }: Figures): void {
  const columns = [p10, p50, p95].map((value) => value.toFixed(3).padStart(8)).join("");
  print(`${name.padEnd(52)}${columns}`);
}

/** Times `run`, one write to disk, on its own. */
function timed(run: () => void): Figures {
  const times: number[] = [];
  for (let count = 0; count < 600; count += 1) {
    const began = performance.now();
    run();
    if (count >= 100) times.push(performance.now() - began);
  }
  return figuresOf(times);
}

function commitsAlone(): Record<string, Figures> {
  const folder = mkdtempSync(join(tmpdir(), "parley-bench-"));
  const page = Buffer.alloc(4096);
  const descriptor = openSync(join(folder, "plain"), "w");
  const plain = timed(() => {
    writeSync(descriptor, page);
    fdatasyncSync(descriptor);
  });
  closeSync(descriptor);
  const db = new Database(join(folder, "rows.db"));
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)");
  const insert = db.prepare("INSERT INTO rows (text) VALUES (?)");
  const sqlite = timed(() => void insert.run("When are you open?"));
  db.close();
  rmSync(folder, { recursive: true });
  return { "a page and fdatasync": plain, "one row, WAL, synchronous=FULL": sqlite };
}

const model = await start("../test/support/vendors/scripted-model.ts", ["--tokens", "20"], {});
const folder = mkdtempSync(join(tmpdir(), "parley-bench-"));
const stampsFile = join(folder, "stamps.json");
const serving = await serve(
  model.port, { BENCH_PATH_FILE: stampsFile }, ["--import", file("path-probe.ts")]);
const connection = new Connection(serving.started.port, "reply_delta");
const seen: Stamps[] = [];
let conversation = "";
for (let count = 0; count < WARM + REPLIES; count += 1) {
  if (count % PER_CONVERSATION === 0) conversation = await serving.newConversation();
  const sent = nowMicros();
  const { firstMs, wholeMs } = await connection.send(
    `/api/conversations/${conversation}/messages`, MESSAGE);
  seen.push({ sent, first: sent + firstMs * 1000, whole: sent + wholeMs * 1000 });
}
connection.close();
await stop(model);
await serving.close();
const stamps = JSON.parse(readFileSync(stampsFile, "utf8")) as Stamps[];
rmSync(folder, { recursive: true });
if (stamps.length !== seen.length) throw new Error("a reply was not stamped");

const parts: Record<string, Figures> = {};
print(`${"milliseconds".padEnd(52)}     p10     p50     p95`);
for (const [part, from, to] of PARTS) {
  const times = seen.slice(WARM).map((client, at) => {
    const all: Stamps = { ...stamps[WARM + at], ...client };
    return ((all[to] ?? NaN) - (all[from] ?? NaN)) / 1000;
  });
  const name = part in parts ? `${part} again` : part;
  parts[name] = figuresOf(times);
  show(name, parts[name]);
}
const alone = commitsAlone();
for (const [name, figures] of Object.entries(alone)) show(name, figures);
printResult("path", { replies: REPLIES, parts_ms: parts, commit_alone_ms: alone });
