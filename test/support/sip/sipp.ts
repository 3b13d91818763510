// Debian's sipp as the far end: plays one of the scenarios in test/support/sip/sipp-scenarios, and
// reports what it sent and received, message by message. Tests skip if it is not installed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { askUntil } from "#support/asking.ts";
import { freePorts } from "#support/free-ports.ts";

const EXECUTABLE = "/usr/bin/sipp";
const SCENARIOS = new URL("./sipp-scenarios/", import.meta.url).pathname;
const TIMEOUT_S = 30;

/** Why tests with sipp cannot run here; false: they can. */
export const noSipp = (): string | false =>
  existsSync(EXECUTABLE) ? false : "Debian's sip-tester is not installed";

export interface SippMessage {
  direction: "sent" | "received";
  /** Its first line. */
  line: string;
  text: string;
  /** When, by the clock of the machine. */
  atMs: number;
}

/** The value of a header; null if there is none. */
export function headerOf({ text }: SippMessage, name: string): string | null {
  const line = text.split(/\r?\n/).find((one) =>
    one.toLowerCase().startsWith(`${name.toLowerCase()}:`));
  return line === undefined ? null : line.slice(name.length + 1).trim();
}

export interface SippOptions {
  /** Name of a file in test/support/sip/sipp-scenarios, without its ending. */
  scenario: string;
  /** Port of the server; absent: sipp waits to be called. */
  to?: number;
  /** What stands for [name] in the scenario: statuses, whole headers, ports. */
  keys?: Record<string, string>;
  /** The number that is dialled; scenarios for many calls dial `numbers` in turn. */
  number?: string;
  numbers?: string[];
  /** The length of pauses for which the scenario has none. */
  pauseMs?: number;
  /** How many calls are made, one by default, and how many begin in a second. */
  calls?: number;
  perSecond?: number;
  atOnce?: number;
  host?: string;
  /** How long until it gives up. */
  timeoutS?: number;
}

export interface Sipp {
  /** Where it listens. */
  port: number;
  /** What it has sent and received so far. */
  messages(): SippMessage[];
  /** Resolves to the message of that direction, beginning and number, from 0, once it is there. */
  saw(direction: SippMessage["direction"], beginning: string, number?: number): Promise<SippMessage>;
  /**
   * Resolves when all calls are over. Rejects, with sipp's complaint and `messages`, if one did not
   * go as the scenario says.
   */
  done: Promise<SippMessage[]>;
  /** Ends it however far it is; idempotent. */
  stop(): Promise<void>;
}

/** Resolves once the system lists the port, or `isOver`; no event reports the binding. */
export async function isBound(port: number, isOver: () => boolean): Promise<void> {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  const lists = (): boolean =>
    readFileSync("/proc/net/udp", "utf8").split("\n").some((line) => line.slice(0, 25).includes(local));
  await askUntil(lists, (listed) => listed || isOver());
}

export async function startSipp(options: SippOptions): Promise<Sipp> {
  const { scenario, to, host = "127.0.0.1", calls = 1 } = options;
  const folder = mkdtempSync(join(tmpdir(), "parley-sipp-"));
  const file = (name: string): string => join(folder, name);
  // sipp takes four ports for audio and video, needed or not.
  const mediaPort = await freePorts(5, host);
  const port = mediaPort + 4;
  writeFileSync(file("messages"), "");
  const keys = {
    rtp_port: String(mediaPort), caller: "+14155550199", called: options.number ?? "nobody",
    extra: "X-Parley: none", ...options.keys,
  };
  // This is not left to sipp, which needs the statuses when it reads the scenario.
  const text = Object.entries(keys).reduce(
    (so, [name, value]) => so.replaceAll(`[${name}]`, value),
    readFileSync(join(SCENARIOS, `${scenario}.xml`), "utf8"));
  writeFileSync(file("scenario.xml"), text);
  writeFileSync(file("numbers.csv"), ["SEQUENTIAL", ...options.numbers ?? []].join("\n"));
  const child = spawn(EXECUTABLE, [
    ...(to === undefined ? [] : [`127.0.0.1:${to}`]),
    "-sf", file("scenario.xml"),
    "-i", host, "-p", String(port), "-mi", host,
    "-mp", String(mediaPort),
    "-m", String(calls), "-r", String(options.perSecond ?? 10), "-l", String(options.atOnce ?? calls),
    "-nostdin", "-timeout", `${options.timeoutS ?? TIMEOUT_S}s`, "-timeout_error",
    "-trace_msg", "-message_file", file("messages"), "-trace_err", "-error_file", file("errors"),
    ...(options.number === undefined ? [] : ["-s", options.number]),
    ...(options.numbers === undefined ? [] : ["-inf", file("numbers.csv")]),
    ...(options.pauseMs === undefined ? [] : ["-d", String(options.pauseMs)]),
  ], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => output.push(chunk));
  const exit = once(child, "close") as Promise<[number | null]>;
  const messages = (): SippMessage[] => readMessages(file("messages"));
  const done = exit.then(([code]) => {
    const heard = messages();
    const complaint = code === 0 ? "" : readText(file("errors"));
    rmSync(folder, { recursive: true, force: true });
    if (code === 0) return heard;
    const said = complaint || Buffer.concat(output).toString().slice(-2000);
    const lines = heard.map(({ direction, line }) => `  ${direction} ${line}`).join("\n");
    const complaints = new Error(`sipp ${scenario} ended with ${code}:\n${lines}\n${said}`);
    throw Object.assign(complaints, { messages: heard });
  });
  // A test that does not await `done` must not fail by an unhandled rejection.
  done.catch(() => undefined);
  await isBound(port, () => child.exitCode !== null || child.signalCode !== null);
  return {
    port,
    messages,
    saw: (direction, beginning, number = 0) =>
      awaitMessage({ file: file("messages"), done, direction, beginning, number }),
    done,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await exit;
    },
  };
}

const readText = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "");

function readMessages(file: string): SippMessage[] {
  const parts = readText(file).split(/^-{20,} ([-\d]+.*)$/m).slice(1);
  return parts.flatMap((part, at): SippMessage[] => {
    const found = /^(?:UDP|TCP) message (sent|received) .*?:\n\n([\s\S]*)$/m.exec(part);
    const [, direction, text] = found ?? [];
    if (text === undefined) return [];
    const line = text.split(/\r?\n/, 1)[0] ?? "";
    const atMs = Date.parse(parts[at - 1] ?? "");
    return [{ direction: direction === "sent" ? "sent" : "received", line, text, atMs }];
  });
}

interface Awaited {
  file: string;
  done: Promise<SippMessage[]>;
  direction: SippMessage["direction"];
  beginning: string;
  number: number;
}

async function awaitMessage(
  { file, done, direction, beginning, number }: Awaited,
): Promise<SippMessage> {
  const find = (messages: SippMessage[]): SippMessage | undefined =>
    messages.filter((one) => one.direction === direction && one.line.startsWith(beginning))[number];
  const known = existsSync(file) ? find(readMessages(file)) : undefined;
  if (known) return known;
  let watcher: ReturnType<typeof watch> | null = null;
  try {
    return await new Promise<SippMessage>((resolve, reject) => {
      const look = (): void => {
        const found = find(readMessages(file));
        if (found) resolve(found);
      };
      done.then((messages) => {
        const found = find(messages);
        if (found) resolve(found);
        else reject(new Error(`sipp never ${direction} ${beginning} (${number})`));
      }, reject);
      if (existsSync(file)) {
        watcher = watch(file, look);
        look();
      }
    });
  } finally {
    (watcher as ReturnType<typeof watch> | null)?.close();
  }
}
