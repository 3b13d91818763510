// Telephone calls for bench/sip.ts: a server process with SIP trunks of several accounts, and
// Debian's sipp, with a thread for the audio, as the far end of many calls at once.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { freePorts } from "#support/free-ports.ts";
import type { RtpFigures, RtpPeerData } from "#support/sip/rtp-peer.ts";
import { headerOf, startSipp, type SippMessage } from "#support/sip/sipp.ts";
import { file, startServer, stop, type Started } from "./load.ts";
import { percentile } from "./report.ts";

const CLOCK_TICKS = 100;
const SAMPLE_MS = 250;
/** How long sipp waits beyond the calls' own length before it gives up. */
const PATIENCE_S = 30;
const rounded = (value: number): number => Number(value.toFixed(2));

const ASSISTANT = {
  name: "Bench", type: "inbound", status: "active", mode: "pipeline", voice_id: 1, language_id: 1,
  llm_model_id: 1, timezone: "UTC", system_prompt: "You are helpful.", post_call_evaluation: false,
  initial_message: "Hello and welcome. ".repeat(8),
};

interface Wire {
  data: { id: number; uuid: string; status: string };
  conversation_id: string;
}

export interface SipServer {
  started: Started;
  sipPort: number;
  /** One number of each account, which reaches that account's assistant. */
  numbers: string[];
  /** The assistant of the first account. */
  assistantUuid: string;
  ask(key: string, path: string, body?: object): Promise<Wire>;
  residentMib(): number;
  stop(): Promise<void>;
}

export async function startSipServer(
  env: Record<string, string>, keys: string[], assistant: object = {},
): Promise<SipServer> {
  const sipPort = await freePorts();
  const started = await startServer({
    ...env, PARLEY_PORT: "0", PARLEY_RATE_LIMITS: "off",
    PARLEY_SIP_PORT: String(sipPort), PARLEY_SIP_HOST: "127.0.0.1",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  });
  // No process is left behind, whatever goes wrong.
  process.once("exit", () => started.child.kill());
  const ask: SipServer["ask"] = async (key, path, body) => {
    const isForm = body instanceof FormData;
    const response = await fetch(`http://127.0.0.1:${started.port}/api${path}`, {
      method: body ? "POST" : "GET",
      headers: {
        authorization: `Bearer ${key}`, ...(isForm ? {} : { "content-type": "application/json" }),
      },
      ...(body ? { body: isForm ? body : JSON.stringify(body) } : {}),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Wire;
  };
  const desks = await Promise.all(keys.map((key, index) => openDesk(ask, key, index, assistant)));
  return {
    started, sipPort, ask,
    numbers: desks.map(({ number }) => number),
    assistantUuid: desks[0]?.uuid ?? "",
    residentMib: () => residentMib(started),
    stop: () => stop(started),
  };
}

async function openDesk(
  ask: SipServer["ask"], key: string, index: number, assistant: object,
): Promise<{ number: string; uuid: string }> {
  const number = `+1415555${String(1000 + index)}`;
  const { data } = await ask(key, "/user/phone-numbers/sip-trunks", {
    sip_trunk_type: "number", phone_number: number, sip_username: "bench",
    sip_password: "bench-secret", sip_address: "127.0.0.1", sip_calling_format: "+e164",
    inbound_authorization_type: "ip", allowed_inbound_ips: ["127.0.0.1"], country_code: "US",
  });
  const made = await ask(key, "/user/assistant", {
    ...ASSISTANT, ...assistant, phone_number_id: data.id,
  });
  return { number, uuid: made.data.uuid };
}

const cpuSeconds = ({ child }: Started): number => {
  const stat = readFileSync(`/proc/${child.pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
};

function residentMib({ child }: Started): number {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(
    readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? [];
  return Number(kib) / 1024;
}

interface Wave {
  calls: number;
  perSecond: number;
  atOnce: number;
  callMs: number;
  /** What callers say, mu-law; null: a burst of noise. */
  speech: Uint8Array | null;
}

export interface Step {
  /** Calls that did not follow sipp's scenario, and its complaint about the first. */
  failed: number;
  complaint: string | null;
  refused: number;
  streams: number;
  packets: number;
  lost: number;
  late: { p50Ms: number; p99Ms: number; maxMs: number; over20: number };
  bareTimer: { p99Ms: number; maxMs: number };
  /** From INVITE to 200. */
  answer: { p50Ms: number; maxMs: number };
  cpuSeconds: number;
  /** Percent of a core per concurrent call. */
  cpuPercentPerCall: number;
  seconds: number;
  mostMib: number;
}

const timesOf = (latenessMs: number[]) => ({
  p50Ms: rounded(percentile(latenessMs, 50)), p99Ms: rounded(percentile(latenessMs, 99)),
  maxMs: rounded(percentile(latenessMs, 100)),
});

export async function callAll(server: SipServer, wave: Wave): Promise<Step> {
  const { calls, perSecond, atOnce, callMs, speech } = wave;
  const workerData: Partial<RtpPeerData> = speech ? { speech } : {};
  const peer = new Worker(file("../test/support/sip/rtp-peer.ts"), { workerData });
  const timer = new Worker(file("voice-timer.ts"));
  const [rtpPort] = await once(peer, "message") as [number];
  const [cpuBefore, startedMs] = [cpuSeconds(server.started), performance.now()];
  let mostMib = 0;
  const sampling = setInterval(() => {
    mostMib = Math.max(mostMib, server.residentMib());
  }, SAMPLE_MS);
  const phones = await startSipp({
    scenario: "load", to: server.sipPort, numbers: server.numbers, calls, perSecond, atOnce,
    pauseMs: callMs, keys: { rtp_port: String(rtpPort) },
    timeoutS: Math.ceil((callMs / 1000) * Math.ceil(calls / atOnce) + calls / perSecond)
      + PATIENCE_S,
  });
  let complaint: string | null = null;
  const messages = await phones.done.catch((error: Error & { messages?: SippMessage[] }) => {
    complaint = error.message.slice(-300);
    return error.messages ?? [];
  });
  clearInterval(sampling);
  const seconds = (performance.now() - startedMs) / 1000;
  const cpu = cpuSeconds(server.started) - cpuBefore;
  timer.postMessage("stop");
  const [bareMs] = await once(timer, "message") as [number[]];
  peer.postMessage("stop");
  const [figures] = await once(peer, "message") as [RtpFigures];
  const { streams, packets, lost, latenessMs } = figures;
  return {
    ...outcomesOf(messages, calls), complaint, streams, packets, lost,
    late: { ...timesOf(latenessMs), over20: latenessMs.filter((ms) => ms > 20).length },
    bareTimer: timesOf(bareMs),
    cpuSeconds: rounded(cpu), cpuPercentPerCall: rounded((100 * cpu) / (packets / 50)),
    seconds: rounded(seconds), mostMib: Math.round(mostMib),
  };
}

function outcomesOf(
  messages: SippMessage[], calls: number,
): Pick<Step, "failed" | "refused" | "answer"> {
  const idOf = (message: SippMessage): string => headerOf(message, "Call-ID") ?? "";
  const answersTo = (method: string, status: string): SippMessage[] =>
    messages.filter((message) => message.direction === "received"
      && message.line.startsWith(`SIP/2.0 ${status}`)
      && headerOf(message, "CSeq")?.endsWith(method));
  const over = new Set(answersTo("BYE", "200").map(idOf));
  const refused = new Set(answersTo("INVITE", "503").map(idOf));
  const invited = new Map<string, number>();
  for (const message of messages) {
    if (!message.line.startsWith("INVITE ") || invited.has(idOf(message))) continue;
    invited.set(idOf(message), message.atMs);
  }
  const answerMs = [...new Map(answersTo("INVITE", "200").toReversed().map((message) =>
    [idOf(message), message.atMs - (invited.get(idOf(message)) ?? message.atMs)])).values()];
  return {
    failed: calls - over.size - refused.size, refused: refused.size,
    answer: {
      p50Ms: rounded(percentile(answerMs, 50)), maxMs: rounded(percentile(answerMs, 100)),
    },
  };
}
