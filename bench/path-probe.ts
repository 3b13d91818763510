// Loaded by path.ts into the server before its own program: records when each part of a reply's
// path began, by the clock that all processes of the machine share. It patches only the edges: the
// HTTP server's callbacks, messages between threads, BEGIN and COMMIT, and what undici publishes.
import { writeFileSync } from "node:fs";
import diagnostics from "node:diagnostics_channel";
import { createRequire, syncBuiltinESMExports } from "node:module";
import { isMainThread, parentPort, type Worker } from "node:worker_threads";
import type { HttpResponse, TemplatedApp } from "uWebSockets.js";
import { nowMicros } from "./watching.ts";

/** In microseconds: when each named event first happened. */
export type Stamps = Partial<Record<string, number>>;

const require = createRequire(import.meta.url);
let stamps: Stamps = {};
const stamp = (name: string): void => {
  stamps[name] ??= nowMicros();
};

function probeWriter(): void {
  interface Prepared {
    run(...given: unknown[]): unknown;
  }
  const { prototype } = require("better-sqlite3") as {
    prototype: { prepare(sql: string): Prepared };
  };
  const prepare = prototype.prepare;
  prototype.prepare = function (sql) {
    const statement = prepare.call(this, sql);
    if (sql !== "BEGIN IMMEDIATE" && sql !== "COMMIT") return statement;
    const name = sql === "COMMIT" ? "commit" : "begun";
    return {
      run: (...given) => {
        stamp(name);
        const result = statement.run(...given);
        stamp(`${name}_done`);
        return result;
      },
    };
  };
  const port = parentPort as NonNullable<typeof parentPort>;
  const post = port.postMessage.bind(port);
  port.postMessage = (message: object) => {
    stamp("posted");
    post({ ...message, stamps });
    stamps = {};
  };
}

const replies: Stamps[] = [];

async function probeMain(file: string): Promise<void> {
  const threads = require("node:worker_threads") as { Worker: typeof Worker };
  let command = "";
  threads.Worker = class extends threads.Worker {
    override postMessage(message: { batch?: { command: string }[] }): void {
      command = message.batch?.[0]?.command ?? "";
      stamp(`${command} sent`);
      super.postMessage(message);
    }
    override emit(name: string | symbol, ...given: unknown[]): boolean {
      const [message] = given as [{ stamps?: Stamps }?];
      if (name === "message" && message?.stamps) {
        for (const [what, at] of Object.entries(message.stamps)) {
          stamps[`${command} ${what}`] ??= at as number;
        }
        stamp(`${command} answered`);
      }
      return super.emit(name, ...given);
    }
  };
  syncBuiltinESMExports();
  for (const [channel, name] of [
    ["undici:client:sendHeaders", "model asked"],
    ["undici:request:headers", "model began"],
    ["undici:request:trailers", "model ended"],
  ] as const) diagnostics.subscribe(channel, () => stamp(name));

  // The package copies its functions from this object when it is loaded itself.
  const inner = new URL("uws.mjs", import.meta.resolve("uWebSockets.js")).href;
  const { default: uWS } = await import(inner) as { default: { App(): TemplatedApp } };
  const App = uWS.App;
  const probe = (raw: HttpResponse): void => {
    stamps = {};
    stamp("accepted");
    const { write, end, onData } = raw;
    raw.onData = (take) => onData.call(raw, (chunk, isLast) => {
      if (isLast) stamp("body in");
      take(chunk, isLast);
    });
    raw.write = (text) => {
      if (String(text).includes("reply_delta")) stamp("first word out");
      return write.call(raw, text);
    };
    raw.end = (body, close) => {
      if (String(body).includes("reply_delta")) stamp("first word out");
      stamp("end out");
      const done = end.call(raw, body, close);
      stamp("end written");
      replies.push(stamps);
      return done;
    };
  };
  uWS.App = () => {
    const app = App();
    const post = app.post.bind(app);
    app.post = (pattern, handle) => post(pattern, String(pattern).endsWith("/messages")
      ? (raw, request) => {
          probe(raw);
          return handle(raw, request);
        }
      : handle);
    return app;
  };
  process.on("exit", () => writeFileSync(file, JSON.stringify(replies)));
}

const { BENCH_PATH_FILE: file } = process.env;
if (!isMainThread) probeWriter();
else if (file !== undefined) await probeMain(file);
