// The far end of a web call as a program: it speaks lines of the loopback speech in real time,
// hears the assistant's words, and answers `clear` as a page does.
import { once } from "node:events";
import { WebSocket } from "ws";
import { createWordDecoder, loopbackAudio } from "#providers/speech/loopback.ts";
import type { TestServer } from "#support/server.ts";
import { createWaiting } from "#support/waiting.ts";

const RATE = 16_000;
const FRAME = 320;

export interface ServerMessage {
  type: string;
  role?: string;
  text?: string;
  final?: boolean;
  state?: string;
  reason?: string;
  error?: string;
  call_id?: number;
  status?: number;
  sdp?: string;
  path?: string;
  webrtc?: { ice_servers: { urls: string[]; username?: string; credential?: string }[] };
  hearing?: string;
  name?: string;
  phase?: string;
}

export async function callTicket(server: TestServer, conversation: string): Promise<string> {
  const { status, body } = await server.call("POST", `/conversations/${conversation}/call-ticket`);
  if (status !== 200) throw new Error(`no ticket: ${status} ${JSON.stringify(body)}`);
  return body.ticket as string;
}

export class WebCaller {
  readonly messages: ServerMessage[] = [];
  /** Words heard to their end. */
  readonly words: string[] = [];
  frames = 0;
  /** Everything that was heard, frame by frame. */
  readonly sound: Int16Array[] = [];
  readonly #socket: WebSocket;
  readonly #waiting = createWaiting();
  #line: Int16Array = new Int16Array(0);
  #pace: NodeJS.Timeout | null = null;
  #closed = false;
  #closedBy = "";

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    const decoder = createWordDecoder(RATE, ({ text, frames, of }) => {
      if (frames < of) return;
      this.words.push(text);
      this.#waiting.look();
    });
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      if (isBinary) {
        this.frames += 1;
        const { buffer, byteOffset: at } = data;
        const frame = new Int16Array(buffer.slice(at, at + data.length));
        this.sound.push(frame);
        decoder.write(frame);
        this.#waiting.look();
        return;
      }
      const message = JSON.parse(data.toString("utf8")) as ServerMessage;
      this.messages.push(message);
      if (message.type === "clear") this.send({ type: "cleared", played_ms: 0, dropped_ms: 0 });
      this.#waiting.look();
    });
    socket.on("close", (code, reason) => {
      this.#closed = true;
      this.#closedBy = `${code} ${reason.toString()}`;
      if (this.#pace) clearInterval(this.#pace);
      this.#waiting.look();
    });
    // The close that follows reports the same.
    socket.on("error", () => undefined);
  }

  static async open(
    server: TestServer, conversation: string, ticket: string, start: object = {},
  ): Promise<WebCaller> {
    const base = server.url.replace("http", "ws");
    const socket = new WebSocket(`${base}/api/conversations/${conversation}/call?ticket=${ticket}`);
    const caller = new WebCaller(socket);
    await once(socket, "open");
    caller.send({ type: "start", format: { encoding: "pcm_s16le", rate: RATE }, ...start });
    await caller.until(() => caller.messages.some(({ type }) => type === "ready" || type === "error"));
    caller.#pace = setInterval(() => caller.#frame(), 20);
    return caller;
  }

  get callId(): number {
    return this.messages.find(({ type }) => type === "ready")?.call_id ?? 0;
  }

  send(message: object): void {
    if (!this.#closed) this.#socket.send(JSON.stringify(message));
  }

  say(text: string): void {
    this.play(loopbackAudio(text, RATE));
  }

  /** Sound at 16 kHz. */
  play(line: Int16Array): void {
    this.#line = line;
  }

  /** Resolves when the condition holds; rejects when the socket closes before. */
  async until(condition: () => boolean): Promise<void> {
    await this.#waiting.until(() => condition() || this.#closed);
    if (this.#closed && !condition()) {
      throw new Error(`closed (${this.#closedBy}) before: ${JSON.stringify(this.messages.slice(-5))}`);
    }
  }

  async closed(): Promise<void> {
    if (!this.#closed) await once(this.#socket, "close");
  }

  /** Sends no more sound; what it sent before has arrived when this resolves. */
  async fallSilent(): Promise<void> {
    if (this.#pace) clearInterval(this.#pace);
    const isPong = ({ type }: ServerMessage): boolean => type === "pong";
    const before = this.messages.filter(isPong).length;
    this.send({ type: "ping" });
    await this.until(() => this.messages.filter(isPong).length > before);
  }

  /** Ends as when the page's process is killed: without a closing frame. */
  vanish(): void {
    this.#socket.terminate();
  }

  hangUp(): void {
    this.#socket.close();
  }

  /** Finished lines as `role: text`. */
  get lines(): string[] {
    return this.messages.filter(({ type, final }) => type === "transcript" && final === true)
      .map(({ role, text }) => `${role}: ${text}`);
  }

  #frame(): void {
    if (this.#closed) return;
    const frame = new Int16Array(FRAME);
    frame.set(this.#line.subarray(0, FRAME));
    this.#line = this.#line.subarray(FRAME);
    this.#socket.send(Buffer.from(frame.buffer));
  }
}
