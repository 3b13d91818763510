// A server with telephone calls for bench/voice.ts: the real process, synthetic speech made of
// numbers, the far ends of the loopback carrier in its media thread, and as many accounts as the
// plan's limit of concurrent calls requires.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { file, startServer, stop, type Started } from "./load.ts";

const CALLS_PER_ACCOUNT = 10;
const CLOCK_TICKS = 100;
const POLL_MS = 250;

/** Numbers of the loopback carrier, named for what their far ends do: loopback-numbers.ts. */
export const ASKS_TWICE = "+15550100100";
export const INTERRUPTS = "+15550100007";

export interface Turn {
  endpoint_ms: number | null;
  final_transcript_ms: number | null;
  first_token_ms: number | null;
  first_audio_ms: number | null;
  heard_ms: number | null;
}

interface CallRecord {
  status: string;
  latency: Turn[];
}

interface Line {
  key: string;
  assistantId: number;
}

export interface CallServer {
  /** Dials `count` calls at even intervals; resolves once the last is dialled. */
  dial(count: number, spanMs: number, number?: string): Promise<void>;
  /** An inbound call whose caller says these lines, each after 1.2 s of the assistant's silence. */
  receive(lines: readonly string[]): Promise<void>;
  /** Waits until no call is live; false if one still is at `deadline` (performance.now). */
  areOver(deadline: number): Promise<boolean>;
  /** The turns of all calls dialled since the last time; throws when one went wrong. */
  turns(): Promise<Turn[]>;
  cpuSeconds(): number;
  residentMib(): number;
  stop(): Promise<void>;
}

export function parley(env: Record<string, string>, args: string[]): Record<string, unknown> {
  const text = execFileSync(process.execPath, [file("../src/cli.ts"), ...args, "--json"], {
    env, encoding: "utf8",
  });
  return JSON.parse(text) as Record<string, unknown>;
}

/** Keys of accounts that may hold `calls` live calls together; they stay in the data folder. */
export function createKeys(env: Record<string, string>, calls: number): string[] {
  return Array.from({ length: Math.ceil(calls / CALLS_PER_ACCOUNT) }, (_, number) =>
    String(parley(env, ["account", "create", "--name", `Bench ${number}`, "--balance", "100000"]).api_key));
}

export async function startCallServer(
  env: Record<string, string>, keys: string[], assistant: object,
): Promise<CallServer> {
  const started = await startServer({
    PARLEY_SPEECH: "loopback", ...env, PARLEY_PORT: "0", PARLEY_RATE_LIMITS: "off",
  });
  process.once("exit", () => started.child.kill());
  const ask = asking(started);
  const lines = await Promise.all(keys.map(async (key): Promise<Line> => {
    const { data } = await ask<{ data: { id: number } }>(key, "/user/assistant", assistant);
    return { key, assistantId: data.id };
  }));
  let dialled: { key: string; id: number }[] = [];
  /** The assistant for inbound calls, made with the first of them. */
  let inboundId: number | null = null;
  const dialOne = async ({ key, assistantId }: Line, number: string): Promise<void> => {
    const { call_id: id } = await ask<{ call_id: number }>(key, "/user/make_call", {
      phone_number: number, assistant_id: assistantId,
    });
    dialled.push({ key, id });
  };
  const turnsOf = async ({ key, id }: { key: string; id: number }): Promise<Turn[]> => {
    const path = `/user/calls/${id}`;
    let { status, latency } = await ask<CallRecord>(key, path);
    // An `ended` call's recording is still being closed.
    while (status === "ended") {
      await delay(POLL_MS);
      ({ status, latency } = await ask<CallRecord>(key, path));
    }
    if (status !== "ended_by_customer") throw new Error(`call ${id} went wrong: ${status}`);
    return latency;
  };
  const { pid } = started.child;
  return {
    dial: async (count, spanMs, number = ASKS_TWICE) => {
      const startedMs = performance.now();
      await Promise.all(Array.from({ length: count }, async (_, index) => {
        await delay(startedMs + (index * spanMs) / count - performance.now());
        await dialOne(lines[index % lines.length]!, number);
      }));
    },
    receive: async (said) => {
      const { key } = lines[0]!;
      inboundId ??= (await ask<{ data: { id: number } }>(
        key, "/user/assistant", { ...assistant, type: "inbound" })).data.id;
      const { call_id: id } = await ask<{ call_id: number }>(
        key, "/user/try_call", { assistant_id: inboundId, lines: said });
      dialled.push({ key, id });
    },
    // Accounts are polled one after the other, so that polling costs the server next to nothing.
    areOver: async (deadline) => {
      for (const { key } of lines) {
        while ((await ask<{ calls: unknown[] }>(key, "/user/calls/live")).calls.length > 0) {
          if (performance.now() > deadline) return false;
          await delay(POLL_MS);
        }
      }
      return true;
    },
    turns: async () => {
      const calls = dialled;
      dialled = [];
      return (await Promise.all(calls.map(turnsOf))).flat();
    },
    cpuSeconds: () => {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
    },
    residentMib: () => {
      const [, kib] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
      return Number(kib) / 1024;
    },
    stop: () => stop(started),
  };
}

/** Sends requests to the API, as POST if there is a body; throws if one is refused. */
function asking({ port }: Started) {
  return async <Answer>(key: string, path: string, body?: object): Promise<Answer> => {
    const response = await fetch(`http://127.0.0.1:${port}/api${path}`, {
      method: body ? "POST" : "GET",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Answer;
  };
}
