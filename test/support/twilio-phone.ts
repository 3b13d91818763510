// The far end of a call at Twilio, as its documentation describes it: reads the document that says
// where the sound goes, opens a signed WebSocket there, sends 20 ms of mu-law at a time and answers
// marks when what was sent before them has been played. No live account was looked at.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import twilio from "twilio";
import { WebSocket } from "ws";
import { encodeG711, LAWS } from "../../src/providers/carriers/sip/g711.ts";

const FRAME = 160;
const FRAME_MS = 20;
const LOUD = 3000;
const SILENCE = 0xff;

export interface StreamDocument {
  url: string;
  parameters: Record<string, string>;
}

const unescapeXml = (text: string): string => text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) =>
  ({ lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" })[name as "lt"]);

/** What `<Connect><Stream>` says. */
export function readStream(document: string): StreamDocument {
  const url = /<Connect><Stream url="([^"]*)">/.exec(document)?.[1];
  assert.ok(url, document);
  const parameters = Object.fromEntries(
    [...document.matchAll(/<Parameter name="([^"]*)" value="([^"]*)"\/>/g)]
      .map(([, name = "", value = ""]) => [unescapeXml(name), unescapeXml(value)]));
  return { url: unescapeXml(url), parameters };
}

/** How many frames each word of a line lasts in the loopback speech. */
export const rhythmOf = (line: string): number[] =>
  line.split(" ").map((word) => Math.max(6, [...word].length * 3));

export interface PhoneOptions {
  document: string;
  callSid: string;
  authToken: string;
  accountSid: string;
  /** Of the opening; absent: the right one; null: none. */
  signature?: string | null;
  /** What the start says beside; absent: as the document asked. */
  parameters?: Record<string, string>;
  mediaFormat?: object;
  /** Without it, only the socket is opened. */
  starts?: boolean;
}

export class TwilioPhone {
  /** How many loud frames were heard in a row, each time it was quiet again. */
  readonly words: number[] = [];
  /** Every message of the server. */
  readonly messages: Record<string, unknown>[] = [];
  frames = 0;
  /** Everything heard. */
  readonly heard: Int16Array[] = [];
  closedWith: { code: number; reason: string } | null = null;
  readonly streamSid = `MZ${randomBytes(16).toString("hex")}`;
  readonly #socket: WebSocket;
  readonly #options: PhoneOptions;
  readonly #waiting = new Set<() => void>();
  #sequence = 0;
  #chunk = 0;
  #line: Uint8Array = new Uint8Array(0);
  #pace: NodeJS.Timeout | null = null;
  #loud = 0;
  #playedUntilMs = 0;
  readonly #marks = new Map<string, NodeJS.Timeout>();

  private constructor(socket: WebSocket, options: PhoneOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      assert.equal(isBinary, false);
      this.#take(JSON.parse(data.toString("utf8")) as Record<string, unknown>);
      this.#changed();
    });
    socket.on("close", (code: number, reason: Buffer) => {
      this.closedWith = { code, reason: reason.toString() };
      if (this.#pace) clearInterval(this.#pace);
      for (const timer of this.#marks.values()) clearTimeout(timer);
      this.#changed();
    });
    socket.on("error", () => undefined);
  }

  /** Resolves to the status of the refusal where there is one. */
  static async open(options: PhoneOptions): Promise<TwilioPhone | number> {
    const { url } = readStream(options.document);
    const { signature = twilio.getExpectedTwilioSignature(options.authToken, url, {}) } = options;
    const socket = new WebSocket(url, {
      headers: signature === null ? {} : { "X-Twilio-Signature": signature },
    });
    const phone = new TwilioPhone(socket, options);
    const refused = await new Promise<number | null>((resolve, reject) => {
      socket.on("open", () => resolve(null));
      socket.on("unexpected-response", (_, { statusCode }) => resolve(statusCode ?? 0));
      socket.on("error", reject);
    });
    if (refused !== null) return refused;
    phone.send({ event: "connected", protocol: "Call", version: "1.0.0" });
    if (options.starts !== false) phone.start();
    return phone;
  }

  /** As `open`, for a call that is to be taken. */
  static async talk(options: PhoneOptions): Promise<TwilioPhone> {
    const phone = await TwilioPhone.open(options);
    if (typeof phone === "number") throw new Error(`the socket was refused: ${phone}`);
    return phone;
  }

  start(): void {
    const { callSid, accountSid, parameters, mediaFormat, document } = this.#options;
    this.#tell("start", {
      start: {
        accountSid, streamSid: this.streamSid, callSid, tracks: ["inbound"],
        mediaFormat: mediaFormat ?? { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 },
        customParameters: parameters ?? readStream(document).parameters,
      },
    });
    this.#pace = setInterval(() => this.#frame(), FRAME_MS);
  }

  send(message: object | string): void {
    if (this.closedWith) return;
    this.#socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  /** Speaks, from the next frame on. */
  say(pcm: Int16Array): void {
    const codes = new Uint8Array(pcm.length);
    encodeG711(LAWS.PCMU, pcm, codes, 0);
    this.#line = codes;
  }

  press(digits: string): void {
    for (const digit of digits) this.#tell("dtmf", { dtmf: { track: "inbound_track", digit } });
  }

  /** The caller hangs up: what Twilio sends then. */
  hangUp(): void {
    const { accountSid, callSid } = this.#options;
    this.#tell("stop", { stop: { accountSid, callSid } });
    this.#socket.close();
  }

  /** The socket ends without a word. */
  cut(): void {
    this.#socket.terminate();
  }

  /** Stops reading. */
  freeze(): void {
    this.#socket.pause();
  }

  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (!condition() && !this.closedWith) return;
        this.#waiting.delete(look);
        if (condition()) resolve();
        else {
          reject(new Error(`closed: ${JSON.stringify(this.closedWith)} after ${this.words.join()}`));
        }
      };
      this.#waiting.add(look);
      look();
    });
  }

  closed(): Promise<void> {
    return this.until(() => this.closedWith !== null);
  }

  /** Resolves once these words were heard, after so many others. */
  async hears(line: string, after = 0): Promise<void> {
    const rhythm = rhythmOf(line);
    await this.until(() => this.words.length >= after + rhythm.length);
    assert.deepEqual(this.words.slice(after, after + rhythm.length), rhythm);
  }

  #tell(event: string, members: object): void {
    this.#sequence += 1;
    const { streamSid } = this;
    this.send({ event, sequenceNumber: String(this.#sequence), streamSid, ...members });
  }

  #frame(): void {
    const payload = new Uint8Array(FRAME).fill(SILENCE);
    payload.set(this.#line.subarray(0, FRAME));
    this.#line = this.#line.subarray(FRAME);
    this.#chunk += 1;
    this.#tell("media", {
      media: {
        track: "inbound", chunk: String(this.#chunk), timestamp: String(this.#chunk * FRAME_MS),
        payload: Buffer.from(payload).toString("base64"),
      },
    });
  }

  #take(message: Record<string, unknown>): void {
    this.messages.push(message);
    assert.equal(message.streamSid, this.streamSid);
    if (message.event === "media") {
      const { media } = message as { media: { payload: string } };
      return this.#hear(Buffer.from(media.payload, "base64"));
    }
    if (message.event === "mark") {
      const { mark } = message as { mark: { name: string } };
      const delayMs = Math.max(0, this.#playedUntilMs - performance.now());
      this.#marks.set(mark.name, setTimeout(() => this.#played(mark.name), delayMs));
      return;
    }
    assert.equal(message.event, "clear");
    this.#playedUntilMs = 0;
    for (const [name, timer] of this.#marks) {
      clearTimeout(timer);
      this.#played(name);
    }
  }

  #played(name: string): void {
    this.#marks.delete(name);
    this.#tell("mark", { mark: { name } });
  }

  #hear(codes: Uint8Array): void {
    assert.equal(codes.length, FRAME);
    const pcm = Int16Array.from(codes, (code) => LAWS.PCMU.samples[code] ?? 0);
    this.frames += 1;
    this.heard.push(pcm);
    this.#playedUntilMs = Math.max(this.#playedUntilMs, performance.now()) + FRAME_MS;
    const isLoud = pcm.slice(FRAME / 2).some((sample) => Math.abs(sample) > LOUD);
    if (isLoud) this.#loud += 1;
    else if (this.#loud > 0) {
      this.words.push(this.#loud);
      this.#loud = 0;
    }
  }

  #changed(): void {
    for (const look of [...this.#waiting]) look();
  }
}
