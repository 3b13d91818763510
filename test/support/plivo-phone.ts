// The far end of a call at Plivo, as its documentation describes it: reads the document that says
// where the sound goes, opens a signed WebSocket there, sends 20 ms of mu-law at a time and says
// when what was sent before a checkpoint has been played. No live account was looked at.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { WebSocket } from "ws";
import { LAWS } from "#providers/carriers/sip/media/g711.ts";
import { PLIVO_ID, plivoHeaders } from "./plivo-server.ts";
import { rhythmOf } from "./twilio-phone.ts";

const FRAME = 160;
const FRAME_MS = 20;
const LOUD = 3000;
const SILENCE = Buffer.alloc(FRAME, 0xff).toString("base64");

/** Whole: nothing may stand beside the stream. */
const DOCUMENT = new RegExp([
  '^<\\?xml version="1\\.0" encoding="UTF-8"\\?><Response>',
  '<Stream bidirectional="true" keepCallAlive="true" contentType="audio/x-mulaw;rate=8000"',
  ' extraHeaders="(?<extraHeaders>[^"]*)">(?<url>wss?:[^<]+)</Stream></Response>$',
].join(""));

export function readStream(document: string): { url: string; extraHeaders: string } {
  const { url, extraHeaders } = DOCUMENT.exec(document)?.groups ?? {};
  assert.ok(url !== undefined && extraHeaders !== undefined, document);
  return { url, extraHeaders };
}

export interface PlivoPhoneOptions {
  document: string;
  callId: string;
  /** What the socket is signed as; absent: as it is; null: not at all. */
  signedAs?: "http" | null;
}

type Message = { event: string; name?: string; streamId?: string; [name: string]: unknown };

export class PlivoPhone {
  /** How many loud frames were heard in a row, each time it was quiet again. */
  readonly words: number[] = [];
  /** Every message of the server. */
  readonly messages: Message[] = [];
  closedWith: number | null = null;
  readonly #streamId = randomUUID();
  readonly #socket: WebSocket;
  readonly #waiting = new Set<() => void>();
  readonly #checkpoints = new Set<NodeJS.Timeout>();
  #pace: NodeJS.Timeout | null = null;
  #sequence = 0;
  #chunk = 0;
  #loud = 0;
  #playedUntilMs = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      assert.equal(isBinary, false);
      this.#take(JSON.parse(data.toString("utf8")) as Message);
      this.#changed();
    });
    socket.on("close", (code: number) => {
      this.closedWith = code;
      if (this.#pace) clearInterval(this.#pace);
      for (const timer of this.#checkpoints) clearTimeout(timer);
      this.#changed();
    });
    socket.on("error", () => undefined);
  }

  /** Resolves to the status of the refusal where there is one. */
  static async open(options: PlivoPhoneOptions): Promise<PlivoPhone | number> {
    const { document, callId, signedAs } = options;
    const { url, extraHeaders } = readStream(document);
    const signed = signedAs === undefined ? url : url.replace(/^ws/, "http");
    const headers = signedAs === null ? {} : plivoHeaders("GET", signed);
    const socket = new WebSocket(url, { headers });
    const phone = new PlivoPhone(socket);
    const refused = await new Promise<number | null>((resolve, reject) => {
      socket.on("open", () => resolve(null));
      socket.on("unexpected-response", (_, { statusCode }) => resolve(statusCode ?? 0));
      socket.on("error", reject);
    });
    if (refused !== null) return refused;
    phone.#tell("start", {
      start: {
        callId, streamId: phone.#streamId, accountId: PLIVO_ID, tracks: ["inbound"],
        mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000 },
      },
      // Given with commas, it comes with semicolons.
      extra_headers: extraHeaders.replaceAll(",", ";"),
    });
    phone.#pace = setInterval(() => phone.#frame(), FRAME_MS);
    return phone;
  }

  /** As `open`, for a call that is to be taken. */
  static async talk(options: PlivoPhoneOptions): Promise<PlivoPhone> {
    const phone = await PlivoPhone.open(options);
    if (typeof phone === "number") throw new Error(`the socket was refused: ${phone}`);
    return phone;
  }

  press(digits: string): void {
    for (const digit of digits) {
      this.#tell("dtmf", { streamId: this.#streamId, dtmf: { track: "inbound", digit, timestamp: "1" } });
    }
  }

  /** The call is over: all that Plivo does then is close. */
  hangUp(): void {
    this.#socket.close();
  }

  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (!condition() && this.closedWith === null) return;
        this.#waiting.delete(look);
        if (condition()) resolve();
        else reject(new Error(`closed with ${this.closedWith} after ${this.words.join()}`));
      };
      this.#waiting.add(look);
      look();
    });
  }

  closed(): Promise<void> {
    return this.until(() => this.closedWith !== null);
  }

  /** Resolves to the first message of that kind. */
  async gets(event: string): Promise<Message> {
    const found = () => this.messages.find((message) => message.event === event);
    await this.until(() => found() !== undefined);
    return found()!;
  }

  /** Resolves once these words were heard, after so many others. */
  async hears(line: string, after = 0): Promise<void> {
    const rhythm = rhythmOf(line);
    await this.until(() => this.words.length >= after + rhythm.length);
    assert.deepEqual(this.words.slice(after, after + rhythm.length), rhythm);
  }

  #tell(event: string, members: object): void {
    if (this.closedWith !== null) return;
    this.#sequence += 1;
    this.#socket.send(JSON.stringify({ event, sequenceNumber: this.#sequence, ...members }));
  }

  #frame(): void {
    this.#chunk += 1;
    const timestamp = String(this.#chunk * FRAME_MS);
    this.#tell("media", {
      streamId: this.#streamId, media: { track: "inbound", timestamp, chunk: this.#chunk, payload: SILENCE },
    });
  }

  #take(message: Message): void {
    this.messages.push(message);
    if (message.event === "sendDTMF") return;
    assert.equal(message.streamId, this.#streamId);
    if (message.event === "playAudio") {
      const { media } = message as unknown as
        { media: { contentType: string; sampleRate: number; payload: string } };
      assert.deepEqual([media.contentType, media.sampleRate], ["audio/x-mulaw", 8000]);
      return this.#hear(Buffer.from(media.payload, "base64"));
    }
    const { streamId, name } = message;
    if (message.event === "checkpoint") {
      const delayMs = Math.max(0, this.#playedUntilMs - performance.now());
      const timer = setTimeout(() => this.#tell("playedStream", { streamId, name }), delayMs);
      this.#checkpoints.add(timer);
      return;
    }
    assert.equal(message.event, "clearAudio");
    this.#playedUntilMs = 0;
    for (const timer of this.#checkpoints) clearTimeout(timer);
    this.#tell("clearedAudio", { streamId });
  }

  #hear(codes: Uint8Array): void {
    assert.equal(codes.length, FRAME);
    this.#playedUntilMs = Math.max(this.#playedUntilMs, performance.now()) + FRAME_MS;
    const isLoud = codes.subarray(FRAME / 2)
      .some((code) => Math.abs(LAWS.PCMU.samples[code] ?? 0) > LOUD);
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
