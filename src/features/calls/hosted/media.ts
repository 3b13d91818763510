// The socket over which a hosted carrier exchanges the sound of one call: from its opening, through
// the start message that names the call, to its end. Made by hosted.ts for every socket.
import { assertNever } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { Socket, SocketHandlers } from "#http/exchange.ts";
import type { DialectName } from "#providers/carriers/hosted/dialect-table.ts";
import { openCodec, type CarrierFrame } from "#providers/carriers/hosted/dialects.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import { dtmfTone, DtmfSender } from "#providers/carriers/sip/media/telephone-event.ts";
import type { Pcm } from "#providers/speech/port.ts";

export const HOSTED_MEDIA_LIMITS = {
  /** From the opening of a socket to its start message. */
  startMs: 10_000,
  /** How long a congested socket is kept; its frames are dropped meanwhile. */
  stallMs: 5000,
  /** Carriers send silence too: a socket on which nothing comes for so long is dead. */
  silenceMs: 20_000,
  /** Sound further ahead of real time than this is dropped: nobody speaks that fast. */
  aheadMs: 3000,
  marksMax: 16,
} as const;

/** How often the timeouts of a socket are checked. */
const WATCH_MS = 1000;
/** Codes below 4500: the carrier may reconnect; from 4500 on that is of no use. */
const CLOSE = { over: 1000, refused: 4500, late: 4408, slow: 4508 } as const;

/** The outgoing sound of one call. Its methods do nothing once the socket is closed. */
export interface HostedStream {
  readonly rate: number;
  /** A frame of 20 ms, in real time. */
  send(frame: Pcm): void;
  /** Drops what was sent and is not heard yet. */
  clear(): void;
  /** Asks the carrier to confirm when everything sent before has been heard. */
  mark(): void;
  dtmf(digits: string): void;
  /** Resolves when everything marked is heard, or cannot be any more. */
  heard(): Promise<void>;
  close(): void;
}

/** `stopped`: the carrier announced the end; otherwise only the socket has ended. */
export type StreamEnd = "stopped" | "closed" | "failed";

/** The call that a stream belongs to. */
export interface StreamOwner {
  publish(event: LegEvent): void;
  /** Called once. */
  over(end: StreamEnd): void;
}

interface StreamStart {
  /** The token from the parameters we passed to the carrier; empty: none came back. */
  token: string;
  /** The carrier's id of the call; null when the dialect does not send it. */
  callId: string | null;
}

interface StreamOptions {
  dialect: DialectName;
  /** Null: no call waits for this stream. */
  claim(start: StreamStart, stream: HostedStream): StreamOwner | null;
  system: System;
  log: Logger;
}

/** The parameter that says which call a stream belongs to. */
export const TOKEN_PARAMETER = "token";

export function serveStream(options: StreamOptions, socket: Socket): SocketHandlers {
  const stream = new Stream(options, socket);
  return {
    message: (text) => stream.receive(text),
    bytes: (bytes) => stream.receive(bytes),
    drained: () => stream.drained(),
    closed: () => stream.end("closed"),
  };
}

class Stream implements HostedStream {
  readonly rate: number;
  readonly #options: StreamOptions;
  readonly #socket: Socket;
  readonly #codec: ReturnType<typeof openCodec>;
  readonly #openedMs: number;
  readonly #watch: { cancel(): void };
  readonly #keys = new DtmfSender();
  readonly #pause: Pcm;
  /** Names of marks that are not confirmed yet. */
  readonly #marks = new Set<string>();
  #markNumber = 0;
  #waitsForMarks: (() => void)[] = [];
  #owner: StreamOwner | null = null;
  #isOver = false;
  #cameMs: number;
  #startedMs = 0;
  /** How much sound was received. */
  #soundMs = 0;
  #congestedMs: number | null = null;

  constructor(options: StreamOptions, socket: Socket) {
    this.#options = options;
    this.#socket = socket;
    this.#codec = openCodec(options.dialect);
    this.rate = this.#codec.rate;
    this.#pause = new Int16Array(this.rate / 50);
    this.#openedMs = options.system.monotonicMs();
    this.#cameMs = this.#openedMs;
    this.#watch = options.system.every(WATCH_MS, () => this.#look());
  }

  // From the carrier

  receive(data: string | Uint8Array): void {
    this.#cameMs = this.#options.system.monotonicMs();
    for (const frame of this.#codec.receive(data)) {
      if (!this.#isOver) this.#handle(frame);
    }
  }

  drained(): void {
    this.#congestedMs = null;
  }

  /** Idempotent. */
  end(how: StreamEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watch.cancel();
    this.#marks.clear();
    this.#marksChanged();
    const owner = this.#owner;
    this.#owner = null;
    owner?.over(how);
  }

  #handle(frame: CarrierFrame): void {
    switch (frame.kind) {
      case "start":
        return this.#start(frame);
      case "unusable":
        this.#options.log.error({ format: frame.format },
          "a carrier sends audio in a format that was not requested");
        return this.#shut("failed", CLOSE.refused, "format");
      case "audio":
        if (this.#isInTime(frame.pcm)) this.#owner?.publish({ kind: "audio", pcm: frame.pcm });
        return;
      case "dtmf":
        return this.#owner?.publish(frame);
      case "mark":
        this.#marks.delete(frame.name);
        return this.#marksChanged();
      case "stop":
        return this.#shut("stopped", CLOSE.over, "over");
      case "cleared":
      case "ignored":
        return;
      default:
        return assertNever(frame);
    }
  }

  #start({ parameters, callSid }: Extract<CarrierFrame, { kind: "start" }>): void {
    this.#startedMs = this.#options.system.monotonicMs();
    const start = { token: parameters[TOKEN_PARAMETER] ?? "", callId: callSid };
    this.#owner = this.#options.claim(start, this);
    if (!this.#owner) this.#shut("closed", CLOSE.refused, "no such call");
  }

  #isInTime(pcm: Pcm): boolean {
    const ms = (pcm.length / this.rate) * 1000;
    const { aheadMs } = HOSTED_MEDIA_LIMITS;
    if (this.#soundMs + ms > this.#cameMs - this.#startedMs + aheadMs) return false;
    this.#soundMs += ms;
    return true;
  }

  #look(): void {
    const nowMs = this.#options.system.monotonicMs();
    const { startMs, stallMs, silenceMs } = HOSTED_MEDIA_LIMITS;
    if (!this.#owner) {
      if (nowMs - this.#openedMs >= startMs) this.#shut("closed", CLOSE.late, "no start");
    } else if (nowMs - this.#cameMs >= silenceMs) {
      this.#shut("failed", CLOSE.late, "silent");
    } else if (this.#congestedMs !== null && nowMs - this.#congestedMs >= stallMs) {
      this.#shut("failed", CLOSE.slow, "slow");
    }
  }

  #shut(how: StreamEnd, code: number, reason: string): void {
    this.end(how);
    this.#socket.end(code, reason);
  }

  // To the carrier

  send(frame: Pcm): void {
    // Late sound is worse than none: what the socket does not take at once is dropped.
    if (this.#isOver || this.#congestedMs !== null) return;
    const key = this.#keys.next();
    const tone = key?.isTone ? dtmfTone(key) : this.#pause;
    this.#write(this.#codec.audio(key ? tone : frame));
  }

  clear(): void {
    this.#write(this.#codec.clear());
  }

  mark(): void {
    const name = String((this.#markNumber += 1));
    const message = this.#codec.mark(name);
    if (message === null || this.#isOver) return;
    if (this.#marks.size >= HOSTED_MEDIA_LIMITS.marksMax) this.#marks.clear();
    this.#marks.add(name);
    this.#write(message);
  }

  dtmf(digits: string): void {
    const message = this.#codec.dtmf(digits);
    if (message === null) this.#keys.add(digits);
    else this.#write(message);
  }

  heard(): Promise<void> {
    return new Promise((resolve) => {
      this.#waitsForMarks.push(resolve);
      this.#marksChanged();
    });
  }

  close(): void {
    this.#shut("closed", CLOSE.over, "over");
  }

  #marksChanged(): void {
    if (this.#marks.size > 0) return;
    for (const resolve of this.#waitsForMarks.splice(0)) resolve();
  }

  #write(message: string | Uint8Array | null): void {
    if (message === null || this.#isOver) return;
    const isTaken = typeof message === "string"
      ? this.#socket.send(message)
      : this.#socket.sendBytes(message);
    if (!isTaken) this.#congestedMs ??= this.#options.system.monotonicMs();
  }
}
