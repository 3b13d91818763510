// The WebSocket of a call at Vonage, as its documentation describes it: opened where the document
// says, signed if it says so, then linear sound at 16 kHz in binary messages of 20 ms both ways and
// signals as JSON. Speaks and hears the words of the loopback speech.
import assert from "node:assert/strict";
import { WebSocket } from "ws";
import { createWordDecoder, loopbackAudio } from "#providers/speech/loopback.ts";
import { refusalOf } from "./carrier-socket.ts";
import type { Ncco } from "./vonage-server.ts";
import { vonageBearer } from "./vonage-signing.ts";
import { createWaiting } from "#support/waiting.ts";

const RATE = 16_000;
const FRAME = 320;
const FRAME_MS = 20;

export interface VonagePhoneOptions {
  ncco: Ncco;
  /** The header of the handshake; absent: as the document asks; null: none. */
  authorization?: string | null;
  /** The headers in the first message; absent: as in the document. */
  headers?: Record<string, string>;
}

export class VonagePhone {
  /** Words heard to their end. */
  readonly words: string[] = [];
  /** Every signal of the server. */
  readonly messages: Record<string, unknown>[] = [];
  closedWith: { code: number; reason: string } | null = null;
  readonly #socket: WebSocket;
  readonly #ear: ReturnType<typeof createWordDecoder>;
  readonly #waiting = createWaiting();
  readonly #notices = new Map<NodeJS.Timeout, unknown>();
  #pace: NodeJS.Timeout | null = null;
  #line: Int16Array = new Int16Array(0);
  #playedUntilMs = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    this.#ear = createWordDecoder(RATE, ({ text, frames, of }) => {
      if (frames >= of) this.words.push(text);
    });
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.#hear(data);
      else this.#take(JSON.parse(data.toString("utf8")) as Record<string, unknown>);
      this.#waiting.look();
    });
    socket.on("close", (code: number, reason: Buffer) => {
      this.closedWith = { code, reason: reason.toString() };
      if (this.#pace) clearInterval(this.#pace);
      for (const timer of this.#notices.keys()) clearTimeout(timer);
      this.#waiting.look();
    });
    // The close that follows reports the same.
    socket.on("error", () => undefined);
  }

  /** Resolves to the status if the server refuses. */
  static async open(
    { ncco, authorization, headers }: VonagePhoneOptions,
  ): Promise<VonagePhone | number> {
    const [endpoint = assert.fail("no endpoint")] = ncco[0]?.endpoint ?? [];
    assert.equal(endpoint.type, "websocket");
    const asked = endpoint.authorization?.type === "vonage" ? vonageBearer(null) : null;
    const shown = authorization === undefined ? asked : authorization;
    const socket = new WebSocket(endpoint.uri ?? "", {
      headers: shown === null ? {} : { authorization: shown },
    });
    const phone = new VonagePhone(socket);
    const refused = await refusalOf(socket);
    if (refused !== null) return refused;
    phone.send({
      event: "websocket:connected", "content-type": endpoint["content-type"],
      ...headers ?? endpoint.headers,
    });
    phone.#pace = setInterval(() => phone.#frame(), FRAME_MS);
    return phone;
  }

  /** As `open`, for a call that has to be accepted. */
  static async talk(ncco: Ncco): Promise<VonagePhone> {
    const phone = await VonagePhone.open({ ncco });
    if (typeof phone === "number") throw new Error(`the socket was refused: ${phone}`);
    return phone;
  }

  send(message: object): void {
    if (!this.closedWith) this.#socket.send(JSON.stringify(message));
  }

  /** Speaks, from the next frame on. */
  say(line: string): void {
    this.#line = loopbackAudio(line, RATE);
  }

  press(digits: string): void {
    for (const digit of digits) this.send({ event: "websocket:dtmf", digit, duration: 260 });
  }

  /** The telephone hangs up: Vonage only closes the socket then. */
  hangUp(): void {
    this.#socket.close();
  }

  async until(condition: () => boolean): Promise<void> {
    await this.#waiting.until(() => condition() || this.closedWith !== null);
    if (this.closedWith && !condition()) {
      throw new Error(`closed: ${JSON.stringify(this.closedWith)} after ${this.words.join(" ")}`);
    }
  }

  closed(): Promise<void> {
    return this.until(() => this.closedWith !== null);
  }

  /** Resolves once these words were heard, after `after` others. */
  async hears(line: string, after = 0): Promise<void> {
    const words = line.split(" ");
    await this.until(() => this.words.length >= after + words.length);
    assert.deepEqual(this.words.slice(after, after + words.length), words);
  }

  #frame(): void {
    const frame = new Int16Array(FRAME);
    frame.set(this.#line.subarray(0, FRAME));
    this.#line = this.#line.subarray(FRAME);
    this.#socket.send(Buffer.from(frame.buffer));
  }

  #hear(data: Buffer): void {
    assert.equal(data.length, 2 * FRAME);
    this.#playedUntilMs = Math.max(this.#playedUntilMs, performance.now()) + FRAME_MS;
    this.#ear.write(new Int16Array(Uint8Array.from(data).buffer));
  }

  #take(message: Record<string, unknown>): void {
    this.messages.push(message);
    if (message.action === "clear") {
      this.#playedUntilMs = 0;
      for (const [timer, payload] of this.#notices) this.#notify(timer, payload);
      return this.send({ event: "websocket:cleared" });
    }
    assert.equal(message.action, "notify");
    const delayMs = Math.max(0, this.#playedUntilMs - performance.now());
    const timer = setTimeout(() => this.#notify(timer, message.payload), delayMs);
    this.#notices.set(timer, message.payload);
  }

  /** Sends the notice: what was sent before it was requested has been heard. */
  #notify(timer: NodeJS.Timeout, payload: unknown): void {
    clearTimeout(timer);
    this.#notices.delete(timer);
    this.send({ event: "websocket:notify", payload });
  }
}
