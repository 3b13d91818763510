// The far end of a call at Plivo, as its documentation describes it: reads the document that says
// where the sound goes, opens a signed WebSocket there, sends 20 ms of mu-law at a time and reports
// when what was sent before a checkpoint has been played. Not checked against a live account.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { WebSocket } from "ws";
import { refusalOf } from "./carrier-socket.ts";
import { FRAME_MS, MulawFarEnd } from "./mulaw-far-end.ts";
import { PLIVO_ID, plivoHeaders } from "./plivo-server.ts";

/** Matches the whole document: nothing may stand beside the stream. */
const DOCUMENT = new RegExp([
  '^<\\?xml version="1\\.0" encoding="UTF-8"\\?><Response>',
  '<Stream bidirectional="true" keepCallAlive="true" contentType="audio/x-mulaw;rate=8000"',
  ' extraHeaders="(?<extraHeaders>[^"]*)">(?<url>wss?:[^<]+)</Stream></Response>$',
].join(""));

function readStream(document: string): { url: string; extraHeaders: string } {
  const { url, extraHeaders } = DOCUMENT.exec(document)?.groups ?? {};
  assert.ok(url !== undefined && extraHeaders !== undefined, document);
  return { url, extraHeaders };
}

export interface PlivoPhoneOptions {
  document: string;
  callId: string;
  /** The scheme that the socket is signed with; absent: the right one; null: unsigned. */
  signedAs?: "http" | null;
}

type Message = { event: string; name?: string; streamId?: string; [name: string]: unknown };

export class PlivoPhone {
  readonly #messages: Message[] = [];
  readonly #streamId = randomUUID();
  readonly #socket: WebSocket;
  readonly #far = new MulawFarEnd((name) =>
    this.#tell("playedStream", { streamId: this.#streamId, name }));
  #pace: NodeJS.Timeout | null = null;
  #sequence = 0;
  #chunk = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      assert.equal(isBinary, false);
      this.#take(JSON.parse(data.toString("utf8")) as Message);
      this.#far.changed();
    });
    socket.on("close", (code: number, reason: Buffer) => {
      if (this.#pace) clearInterval(this.#pace);
      this.#far.close(code, reason.toString());
    });
    socket.on("error", () => undefined);
  }

  /** Resolves to the status if the server refuses. */
  static async open(options: PlivoPhoneOptions): Promise<PlivoPhone | number> {
    const { document, callId, signedAs } = options;
    const { url, extraHeaders } = readStream(document);
    const signed = signedAs === undefined ? url : url.replace(/^ws/, "http");
    const headers = signedAs === null ? {} : plivoHeaders("GET", signed);
    const socket = new WebSocket(url, { headers });
    const phone = new PlivoPhone(socket);
    const refused = await refusalOf(socket);
    if (refused !== null) return refused;
    phone.#tell("start", {
      start: {
        callId, streamId: phone.#streamId, accountId: PLIVO_ID, tracks: ["inbound"],
        mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000 },
      },
      // The document has commas, for which Plivo sends semicolons.
      extra_headers: extraHeaders.replaceAll(",", ";"),
    });
    phone.#pace = setInterval(() => phone.#frame(), FRAME_MS);
    return phone;
  }

  /** As `open`, for a call that has to be accepted. */
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

  get closedWith(): number | null {
    return this.#far.closedWith?.code ?? null;
  }

  closed(): Promise<void> {
    return this.#far.until(() => this.closedWith !== null);
  }

  /** Resolves to the first message of that kind. */
  async gets(event: string): Promise<Message> {
    const found = () => this.#messages.find((message) => message.event === event);
    await this.#far.until(() => found() !== undefined);
    return found()!;
  }

  /** Resolves once these words were heard, after `after` others. */
  hears(line: string, after = 0): Promise<void> {
    return this.#far.hears(line, after);
  }

  #tell(event: string, members: object): void {
    if (this.closedWith !== null) return;
    this.#sequence += 1;
    this.#socket.send(JSON.stringify({ event, sequenceNumber: this.#sequence, ...members }));
  }

  #frame(): void {
    this.#chunk += 1;
    this.#tell("media", {
      streamId: this.#streamId,
      media: {
        track: "inbound", chunk: this.#chunk, timestamp: String(this.#chunk * FRAME_MS),
        payload: this.#far.speak(),
      },
    });
  }

  #take(message: Message): void {
    this.#messages.push(message);
    if (message.event === "sendDTMF") return;
    assert.equal(message.streamId, this.#streamId);
    if (message.event === "playAudio") {
      const { media } = message as unknown as
        { media: { contentType: string; sampleRate: number; payload: string } };
      assert.deepEqual([media.contentType, media.sampleRate], ["audio/x-mulaw", 8000]);
      return this.#far.hear(media.payload);
    }
    if (message.event === "checkpoint") return this.#far.mark(String(message.name));
    assert.equal(message.event, "clearAudio");
    this.#far.drop();
    this.#tell("clearedAudio", { streamId: this.#streamId });
  }
}
