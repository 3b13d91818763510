// A person of the account who talks in a call by microphone, as in the dashboard's page: frames of
// 20 ms in real time, silence while nothing is said, and what comes back.
import { once } from "node:events";
import { WebSocket } from "ws";
import { loopbackAudio } from "#providers/speech/loopback.ts";

const RATE = 16_000;
const FRAME = RATE / 50;

export class MicrophoneSocket {
  /** Loudest sample of each frame that was heard. */
  readonly peaks: number[] = [];
  /** The JSON frames. */
  readonly messages: Record<string, unknown>[] = [];
  closeCode: number | null = null;
  readonly #socket: WebSocket;
  readonly #timer: NodeJS.Timeout;
  #line: Int16Array = new Int16Array(0);

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      if (!isBinary) {
        this.messages.push(JSON.parse(data.toString()) as Record<string, unknown>);
        return;
      }
      const pcm = new Int16Array(Uint8Array.from(data).buffer);
      this.peaks.push(pcm.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 0));
    });
    socket.on("close", (code) => {
      clearInterval(this.#timer);
      this.closeCode = code;
    });
    this.#timer = setInterval(() => this.#sendFrame(), 20);
  }

  /** Rejects with the status of a refusal. */
  static async open(
    { url, key }: { url: string; key: string }, callId: number,
  ): Promise<MicrophoneSocket> {
    const socket = new WebSocket(`${url.replace("http", "ws")}/api/user/calls/${callId}/speak`, {
      headers: { Authorization: `Bearer ${key}` },
    });
    const refused = once(socket, "unexpected-response").then(([, response]) => {
      socket.on("error", () => undefined);
      throw new Error(String((response as { statusCode: number }).statusCode));
    });
    await Promise.race([once(socket, "open"), refused]);
    return new MicrophoneSocket(socket);
  }

  say(text: string): void {
    this.#line = loopbackAudio(text, RATE);
  }

  tone(ms: number, hertz = 1000, level = 8000): void {
    this.#line = Int16Array.from({ length: (RATE * ms) / 1000 }, (_, at) =>
      level * Math.sin((2 * Math.PI * hertz * at) / RATE));
  }

  async closed(): Promise<void> {
    if (this.closeCode === null) await once(this.#socket, "close");
  }

  /** Drops the connection without a closing frame. */
  drop(): void {
    this.#socket.terminate();
  }

  #sendFrame(): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    const frame = new Int16Array(FRAME);
    frame.set(this.#line.subarray(0, FRAME));
    this.#line = this.#line.slice(FRAME);
    this.#socket.send(Buffer.from(frame.buffer));
  }
}
