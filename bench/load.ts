// Starts the processes under load, reads their CPU and memory, and sends requests with streamed
// replies over raw sockets, so that the load generator leaves the machine to the servers.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { median, percentile } from "./report.ts";

const CLOCK_TICKS = 100;
const CHUNKED_END = "0\r\n\r\n";

export const file = (path: string): string => new URL(path, import.meta.url).pathname;

export interface Started {
  child: ChildProcess;
  port: number;
}

/** Runs a program that prints one line of JSON with its `port` when it is ready. */
export async function start(
  path: string,
  args: string[],
  env: Record<string, string>,
  flags: string[] = [],
): Promise<Started> {
  const child = spawn(process.execPath, [...flags, file(path), ...args], {
    env, stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const text of createInterface({ input: child.stdout })) {
    if (!text.startsWith("{")) continue;
    const { port } = JSON.parse(text) as { port?: number };
    if (typeof port !== "number") continue;
    child.stdout.resume();
    return { child, port };
  }
  throw new Error(`${path} did not start`);
}

/** Starts the server as `npm start` does. */
export function startServer(
  env: Record<string, string>, probe: string[] = [],
): Promise<Started> {
  const { scripts } = JSON.parse(readFileSync(file("../package.json"), "utf8")) as
    { scripts: { start: string } };
  const [, flags = "", main = ""] = /\bnode ((?:--\S+ )*)(\S+\.js)/.exec(scripts.start) ?? [];
  return start(`../${main}`, [], env, [
    ...flags.split(" ").filter((flag) => flag !== ""), ...probe,
  ]);
}

export async function stop({ child }: Started): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}

/** CPU seconds a process has used so far, all its threads. */
export function cpuSeconds(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
}

export function residentMb(pid: number | undefined): number {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Math.round(Number(kib) / 1024);
}

interface Sample {
  firstMs: number;
  wholeMs: number;
}

/** One keep-alive connection that streams one reply at a time. */
export class Connection {
  readonly #socket: Socket;
  readonly #marker: string;
  #text = "";
  #sentMs = 0;
  #firstMs = 0;
  #resolve: (sample: Sample) => void = () => undefined;
  #reject: (error: Error) => void = () => undefined;

  constructor(port: number, marker: string) {
    this.#marker = marker;
    this.#socket = connect(port, "127.0.0.1").setNoDelay(true);
    this.#socket.on("data", (bytes) => this.#take(bytes.toString("latin1")));
    this.#socket.on("error", (error) => this.#reject(error));
    this.#socket.on("close", () => this.#reject(new Error("the server closed the connection")));
  }

  /** Only a complete 200 with a first token counts; anything else rejects. */
  send(path: string, body: string): Promise<Sample> {
    this.#text = "";
    this.#firstMs = 0;
    this.#sentMs = performance.now();
    this.#socket.write(
      `POST ${path} HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n`
      + `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(text: string): void {
    this.#text += text;
    const nowMs = performance.now() - this.#sentMs;
    if (this.#firstMs === 0 && this.#text.includes(this.#marker)) this.#firstMs = nowMs;
    if (this.#text.endsWith(CHUNKED_END)) {
      const isWhole = this.#text.startsWith("HTTP/1.1 200") && this.#firstMs > 0;
      if (isWhole) this.#resolve({ firstMs: this.#firstMs, wholeMs: nowMs });
      else this.#reject(new Error(this.#text.slice(0, 400)));
    } else if (!this.#text.startsWith("HTTP/1.1 200")) this.#reject(new Error(this.#text.slice(0, 400)));
  }
}

/** A server that is put under load. */
export interface Subject {
  name: string;
  started: Started;
  /** Text that comes with the first token, whatever the protocol around it. */
  marker: string;
  /** What each client sends next; called once per request, before its clock starts. */
  client(): Promise<() => Promise<{ path: string; body: string }>>;
}

export interface Figures {
  perSecond: number;
  firstP50Ms: number;
  firstP99Ms: number;
  wholeP50Ms: number;
  cpuMsPerReply: number;
  residentMb: number;
}

/** `clients` at once for `seconds`, each sending its next request when the last reply is whole. */
export async function load(subject: Subject, clients: number, seconds: number): Promise<Figures> {
  const { pid } = subject.started.child;
  const samples: Sample[] = [];
  const senders = await Promise.all(Array.from({ length: clients }, () => subject.client()));
  const cpuBefore = cpuSeconds(pid);
  const startedMs = performance.now();
  await Promise.all(senders.map(async (next) => {
    const connection = new Connection(subject.started.port, subject.marker);
    while (performance.now() < startedMs + seconds * 1000) {
      const { path, body } = await next();
      samples.push(await connection.send(path, body));
    }
    connection.close();
  }));
  const took = (performance.now() - startedMs) / 1000;
  const first = samples.map(({ firstMs }) => firstMs);
  return {
    perSecond: Math.round(samples.length / took),
    firstP50Ms: median(first),
    firstP99Ms: percentile(first, 99),
    wholeP50Ms: median(samples.map(({ wholeMs }) => wholeMs)),
    cpuMsPerReply: ((cpuSeconds(pid) - cpuBefore) * 1000) / samples.length,
    residentMb: residentMb(pid),
  };
}
