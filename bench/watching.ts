// Thousands of watchers in a process of their own, on plain sockets: how many deliveries arrive,
// how long after they were written. Forked by fanout.ts and streams.ts through `startWatchers`.
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { percentile } from "./report.ts";

/** One clock for all processes of the machine. */
export const nowMicros = (): number => Number(process.hrtime.bigint() / 1000n);

export interface Request {
  kind: "ws" | "sse" | "post";
  path: string;
}

interface Opening {
  port: number;
  requests: Request[];
  key: string;
  /** Text that marks a delivery without a time of its own; its clock begins at `began`. */
  marker: string;
  /** What comes before a token's text in its frame; absent: as in Parley's. */
  token?: string;
}

export interface Received {
  open: number;
  refused: string[];
  closed: number;
  deliveries: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

type Command = { open: Opening } | { began: number } | { report: true };

const MESSAGE = JSON.stringify({ message: "When are you open?" });
const OPENING_AT_ONCE = 64;
/** What comes before a token's text in its frame. */
const TOKEN = '"text":"';

function headOf({ kind, path }: Request, key: string): string {
  const head = `${kind === "post" ? "POST" : "GET"} ${path} HTTP/1.1\r\nHost: bench\r\n`
    + (key === "" ? "" : `Authorization: Bearer ${key}\r\n`);
  if (kind === "ws") {
    return `${head}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n`
      + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  }
  if (kind === "sse") return `${head}Accept: text/event-stream\r\n\r\n`;
  return `${head}Accept: text/event-stream\r\nContent-Type: application/json\r\n`
    + `Content-Length: ${MESSAGE.length}\r\n\r\n${MESSAGE}`;
}

class Watchers {
  #sockets: Socket[] = [];
  #latencies: number[] = [];
  #refused: string[] = [];
  #closed = 0;
  #began = 0;
  #token = TOKEN;

  async open({ port, requests, key, marker, token = TOKEN }: Opening): Promise<void> {
    this.#token = token;
    const left = [...requests];
    const next = async (): Promise<void> => {
      for (let request = left.pop(); request; request = left.pop()) {
        await this.#openOne(port, headOf(request, key), marker);
      }
    };
    await Promise.all(Array.from({ length: OPENING_AT_ONCE }, next));
  }

  began(at: number): void {
    this.#began = at;
  }

  report(): Received {
    const latencies = this.#latencies;
    this.#latencies = [];
    return {
      open: this.#sockets.length, refused: this.#refused.slice(0, 3), closed: this.#closed,
      deliveries: latencies.length, p50Ms: percentile(latencies, 50),
      p99Ms: percentile(latencies, 99), maxMs: percentile(latencies, 100),
    };
  }

  /** Resolves once the server has answered, with success or not. */
  #openOne(port: number, head: string, marker: string): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1");
      let isOpen = false;
      socket.setNoDelay(true);
      socket.on("data", (bytes) => {
        if (!isOpen) {
          isOpen = true;
          const line = bytes.toString("latin1", 0, 32).split("\r\n", 1)[0] ?? "";
          if (/ (101|200) /.test(line)) this.#sockets.push(socket);
          else this.#refused.push(line);
          resolve();
        }
        this.#take(bytes.toString("latin1"), marker);
      });
      socket.on("error", () => resolve());
      socket.on("close", () => {
        this.#closed += 1;
        resolve();
      });
      socket.write(head);
    });
  }

  #take(text: string, marker: string): void {
    const now = nowMicros();
    // The whole reply, which comes last, repeats the times of its parts but has no such prefix.
    const token = this.#token;
    for (let at = text.indexOf(token); at >= 0; at = text.indexOf(token, at + 1)) {
      const from = text.indexOf("@", at) + 1;
      if (from === 0 || from > at + token.length + 2) continue;
      this.#latencies.push((now - parseInt(text.slice(from, from + 20), 10)) / 1000);
    }
    if (marker !== "" && text.includes(marker)) this.#latencies.push((now - this.#began) / 1000);
  }
}

/** Files this process may have open: each socket is one. */
export function openFilesMax(): number {
  const limits = readFileSync("/proc/self/limits", "utf8");
  return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? 1024);
}

/** `report` is what all watchers received since the report before. */
interface Forked {
  began(): void;
  report(): Promise<Received>;
  stop(): Promise<void>;
}

/** Resolves once every request is answered, and throws when one was refused. */
export async function startWatchers(opening: Opening): Promise<Forked> {
  const child = fork(fileURLToPath(import.meta.url), ["watch"]);
  const ask = async (command: Command): Promise<Received> => {
    child.send(command);
    const [answer] = await once(child, "message") as [Received];
    return answer;
  };
  const stop = async (): Promise<void> => {
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  };
  const { open, refused } = await ask({ open: opening });
  if (open < opening.requests.length) {
    await stop();
    throw new Error(`${open} of ${opening.requests.length} were let in: ${refused.join("; ")}`);
  }
  return {
    began: () => void child.send({ began: nowMicros() } satisfies Command),
    report: () => ask({ report: true }),
    stop,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === "watch") {
  const watchers = new Watchers();
  process.on("message", (command: Command) => {
    if ("began" in command) return watchers.began(command.began);
    const ready = "open" in command ? watchers.open(command.open) : Promise.resolve();
    void ready.then(() => process.send?.(watchers.report()));
  });
  process.on("disconnect", () => process.exit(0));
}
