// The far end of a call at Twilio, as its documentation describes it: reads the document that says
// where the sound goes, opens a signed WebSocket there, sends 20 ms of mu-law at a time and answers
// marks when what was sent before them has been played. Not checked against a live account.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import twilio from "twilio";
import { WebSocket } from "ws";
import { refusalOf } from "./carrier-socket.ts";
import { FRAME_MS, MulawFarEnd } from "./mulaw-far-end.ts";

export interface StreamDocument {
  url: string;
  parameters: Record<string, string>;
}

const unescapeXml = (text: string): string => text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) =>
  ({ lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" })[name as "lt"]);

/** Reads the URL and parameters of `<Connect><Stream>`. */
export function readStream(document: string): StreamDocument {
  const url = /<Connect><Stream url="([^"]*)">/.exec(document)?.[1];
  assert.ok(url, document);
  const parameters = Object.fromEntries(
    [...document.matchAll(/<Parameter name="([^"]*)" value="([^"]*)"\/>/g)]
      .map(([, name = "", value = ""]) => [unescapeXml(name), unescapeXml(value)]));
  return { url: unescapeXml(url), parameters };
}

export interface PhoneOptions {
  document: string;
  callSid: string;
  authToken: string;
  accountSid: string;
  /** The signature of the handshake; absent: the right one; null: none. */
  signature?: string | null;
  /** The parameters in the start message; absent: those of the document. */
  parameters?: Record<string, string>;
  mediaFormat?: object;
  /** Without it, only the socket is opened. */
  starts?: boolean;
}

export class TwilioPhone {
  /** Every message of the server. */
  readonly messages: Record<string, unknown>[] = [];
  readonly streamSid = `MZ${randomBytes(16).toString("hex")}`;
  readonly #socket: WebSocket;
  readonly #options: PhoneOptions;
  readonly #far = new MulawFarEnd((name) => this.#tell("mark", { mark: { name } }));
  #sequence = 0;
  #chunk = 0;
  #pace: NodeJS.Timeout | null = null;

  private constructor(socket: WebSocket, options: PhoneOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      assert.equal(isBinary, false);
      this.#take(JSON.parse(data.toString("utf8")) as Record<string, unknown>);
      this.#far.changed();
    });
    socket.on("close", (code: number, reason: Buffer) => {
      if (this.#pace) clearInterval(this.#pace);
      this.#far.close(code, reason.toString());
    });
    socket.on("error", () => undefined);
  }

  /** Resolves to the status if the server refuses. */
  static async open(options: PhoneOptions): Promise<TwilioPhone | number> {
    const { url } = readStream(options.document);
    const { signature = twilio.getExpectedTwilioSignature(options.authToken, url, {}) } = options;
    const socket = new WebSocket(url, {
      headers: signature === null ? {} : { "X-Twilio-Signature": signature },
    });
    const phone = new TwilioPhone(socket, options);
    const refused = await refusalOf(socket);
    if (refused !== null) return refused;
    phone.send({ event: "connected", protocol: "Call", version: "1.0.0" });
    if (options.starts !== false) phone.start();
    return phone;
  }

  /** As `open`, for a call that has to be accepted. */
  static async talk(options: PhoneOptions): Promise<TwilioPhone> {
    const phone = await TwilioPhone.open(options);
    if (typeof phone === "number") throw new Error(`the socket was refused: ${phone}`);
    return phone;
  }

  /** How many loud frames were heard in a row, each time it was quiet again. */
  get words(): readonly number[] {
    return this.#far.words;
  }

  get frames(): number {
    return this.#far.frames;
  }

  get heard(): readonly Int16Array[] {
    return this.#far.heard;
  }

  get closedWith(): { code: number; reason: string } | null {
    return this.#far.closedWith;
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
    this.#far.say(pcm);
  }

  press(digits: string): void {
    for (const digit of digits) this.#tell("dtmf", { dtmf: { track: "inbound_track", digit } });
  }

  /** The caller hangs up: sends what Twilio sends then. */
  hangUp(): void {
    const { accountSid, callSid } = this.#options;
    this.#tell("stop", { stop: { accountSid, callSid } });
    this.#socket.close();
  }

  /** Ends the socket without a closing frame. */
  cut(): void {
    this.#socket.terminate();
  }

  /** Stops reading. */
  freeze(): void {
    this.#socket.pause();
  }

  until(condition: () => boolean): Promise<void> {
    return this.#far.until(condition);
  }

  closed(): Promise<void> {
    return this.until(() => this.closedWith !== null);
  }

  /** Resolves once these words were heard, after `after` others. */
  hears(line: string, after = 0): Promise<void> {
    return this.#far.hears(line, after);
  }

  #tell(event: string, members: object): void {
    this.#sequence += 1;
    const { streamSid } = this;
    this.send({ event, sequenceNumber: String(this.#sequence), streamSid, ...members });
  }

  #frame(): void {
    this.#chunk += 1;
    this.#tell("media", {
      media: {
        track: "inbound", chunk: String(this.#chunk), timestamp: String(this.#chunk * FRAME_MS),
        payload: this.#far.speak(),
      },
    });
  }

  #take(message: Record<string, unknown>): void {
    this.messages.push(message);
    assert.equal(message.streamSid, this.streamSid);
    if (message.event === "media") {
      const { media } = message as { media: { payload: string } };
      return this.#far.hear(media.payload);
    }
    if (message.event === "mark") {
      const { mark } = message as { mark: { name: string } };
      return this.#far.mark(mark.name);
    }
    assert.equal(message.event, "clear");
    this.#far.clear();
  }
}
