// Debian's baresip as the telephone at the far end: it plays a file as its microphone, records both
// directions as it sends and hears them, and is controlled over its control port. Tests skip if it
// is not installed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { askUntil } from "#support/asking.ts";
import { freePorts } from "#support/free-ports.ts";
import { isBound } from "./sipp.ts";
import { wavOf } from "#support/calls/wav.ts";
import { createReceived, type Received } from "#support/received.ts";

const EXECUTABLE = "/usr/bin/baresip";
const MODULES = "/usr/lib/baresip/modules";
const NEEDED = [
  "account", "aubridge", "aufile", "ctrl_tcp", "g711", "g722", "menu", "opus", "sndfile", "srtp",
];
/** After this (`-t`) it quits by itself, and hangs up. */
const QUIT_S = 90;

/** Why tests with baresip cannot run here; false: they can. */
export function noBaresip(): string | false {
  const isThere = existsSync(EXECUTABLE)
    && NEEDED.every((name) => existsSync(join(MODULES, `${name}.so`)));
  return isThere ? false : "Debian's baresip is not installed";
}

export const RATE = 8000;

/** The codecs it may speak, and the rate and channels of its recordings with each. */
const CODECS = {
  g711: { rate: RATE, channels: 1, account: "" },
  g722: { rate: 16_000, channels: 1, account: ";audio_codecs=G722/16000/1" },
  opus: { rate: 48_000, channels: 2, account: ";audio_codecs=opus/48000/2" },
} as const;

/** One channel of a WAV; the header's sizes are ignored: those of a file cut off are wrong. */
function samplesOf(wav: Buffer): Int16Array {
  const channels = wav.readUInt16LE(22);
  const at = wav.indexOf("data", 12, "latin1") + 8;
  const count = Math.floor((wav.length - at) / (2 * channels));
  return Int16Array.from({ length: count }, (_, index) =>
    wav.readInt16LE(at + 2 * channels * index));
}

export interface Recordings {
  /** What it sent, and what it heard: both as they were when it hung up, at the codec's rate. */
  sent: Int16Array;
  heard: Int16Array;
  /** The files in its folder and its last output, for when something is missing. */
  log: string;
}

export interface Baresip {
  port: number;
  /** `CALL_ESTABLISHED` and so on. */
  events: Received<{ kind: string; param: string }>;
  /** For example `dial` with an address, `hangup`, `sndcode` with a key. */
  command(name: string, params?: string): Promise<void>;
  /**
   * Ends it, if it has not ended yet, and reads its recordings. Idempotent. SIGKILL: it does not
   * hang up first, for when nobody would answer.
   */
  close(signal?: "SIGKILL"): Promise<Recordings>;
}

export interface BaresipOptions {
  /** What it says from the moment a call is answered, at the codec's rate; silence after that. */
  microphone: Int16Array;
  /** Absent: G.711. */
  codec?: keyof typeof CODECS;
  /** It offers and accepts only encrypted media. */
  isEncrypted?: boolean;
  /** Its number; calls to it are answered at once. Absent: it only calls. */
  number?: string;
}

export async function startBaresip(
  { microphone, number, codec = "g711", isEncrypted = false }: BaresipOptions,
): Promise<Baresip> {
  const { rate, channels, account } = CODECS[codec];
  const folder = mkdtempSync(join(tmpdir(), "parley-baresip-"));
  const file = (name: string): string => join(folder, name);
  // The port between the two is that of SIP over TLS.
  const port = await freePorts(3);
  const control = port + 2;
  writeFileSync(file("microphone.wav"), wavOf(microphone, rate));
  writeFileSync(file("accounts"),
    `<sip:${number ?? "telephone"}@127.0.0.1:${port}>;regint=0`
    + `${number === undefined ? "" : ";answermode=auto"}${account}`
    + `${isEncrypted ? ";mediaenc=srtp-mand" : ""}\n`);
  writeFileSync(file("config"), [
    `sip_listen 127.0.0.1:${port}`,
    `module_path ${MODULES}`,
    ...NEEDED.filter((name) => name !== "account" && name !== "menu" && name !== "ctrl_tcp")
      .map((name) => `module ${name}.so`),
    ...["account", "menu", "ctrl_tcp"].map((name) => `module_app ${name}.so`),
    `ctrl_tcp_listen 127.0.0.1:${control}`,
    `audio_source aufile,${file("microphone.wav")}`,
    "audio_player aubridge,nobody",
    "audio_alert aubridge,nobody",
    `ausrc_srate ${rate}`, `auplay_srate ${rate}`,
    "ausrc_channels 1", `auplay_channels ${channels}`,
    `audio_channels 1-${channels}`, "opus_stereo no", "opus_sprop_stereo no",
    `snd_path ${folder}`,
    "rtp_timeout 0", "jitter_buffer_delay 1-2",
    "",
  ].join("\n"));
  const child = spawn(EXECUTABLE, ["-4", "-f", folder, "-t", String(QUIT_S)], {
    cwd: folder, stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  }
  const exit = once(child, "close");
  let isOver = false;
  void exit.then(() => (isOver = true));
  await isBound(port, () => isOver);
  if (isOver) throw new Error(`baresip did not start:\n${output.slice(-2000)}`);
  const events = createReceived<{ kind: string; param: string }>();
  const socket = await openControl(control, events);
  let closing: Promise<Recordings> | null = null;
  const end = async (signal: NodeJS.Signals): Promise<Recordings> => {
    socket.destroy();
    // It closes its files when it is asked to end.
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exit;
    const recorded = (which: "enc" | "dec"): Int16Array => {
      const name = readdirSync(folder).find((one) => one.endsWith(`${which}.wav`));
      return name === undefined ? new Int16Array(0) : samplesOf(readFileSync(file(name)));
    };
    const log = `${readdirSync(folder).join(" ")}\n${output.slice(-2000)}`;
    const recordings = { sent: recorded("enc"), heard: recorded("dec"), log };
    rmSync(folder, { recursive: true, force: true });
    return recordings;
  };
  return {
    port,
    events,
    command: async (name, params = "") => {
      const token = `${name} ${events.events.length}`;
      send(socket, { command: name, params, token });
      const { param } = await events.event<string>(`answer ${token}`);
      if (param !== "true") throw new Error(`baresip refused ${name} ${params}:\n${output.slice(-2000)}`);
    },
    close: (signal) => (closing ??= end(signal ?? "SIGTERM")),
  };
}

/** Netstrings of JSON. */
async function openControl(port: number, events: Received<{ kind: string; param: string }>) {
  // Its ports are opened one after the other.
  const { socket } = await askUntil(async () => {
    const next = connect(port, "127.0.0.1");
    return { socket: next, isOpen: await once(next, "connect").then(() => true, () => false) };
  }, ({ isOpen }) => isOpen);
  let rest = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const colon = rest.indexOf(":");
      const length = Number(rest.subarray(0, Math.max(0, colon)).toString());
      if (colon < 0 || rest.length < colon + length + 2) return;
      const message = JSON.parse(rest.subarray(colon + 1, colon + 1 + length).toString()) as
        { event?: boolean; type?: string; param?: string; ok?: boolean; token?: string };
      rest = rest.subarray(colon + length + 2);
      if (message.event) events.receive({ kind: message.type ?? "", param: message.param ?? "" });
      else events.receive({ kind: `answer ${message.token}`, param: String(message.ok) });
    }
  });
  socket.on("error", () => undefined);
  return socket;
}

function send(socket: Socket, message: object): void {
  const text = JSON.stringify(message);
  socket.write(`${Buffer.byteLength(text)}:${text},`);
}
