// One live call over a hosted carrier, in the main thread: turns the carrier's reports, its stream
// and our REST requests into the events of one leg. It is remembered for a while after its end, so
// that a call that goes on at the carrier without us is hung up. Made by hosted.ts.
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { wait, type System, type Timer } from "#core/system.ts";
import type { CallReport, HostedCalls, HostedDial } from "#providers/carriers/hosted/port.ts";
import { createCallProgress } from "#providers/carriers/hosted/status.ts";
import type { LegEndCause, LegEvent } from "#providers/carriers/port.ts";
import {
  HOSTED_MEDIA_LIMITS, type HostedStream, type StreamEnd, type StreamOwner,
} from "./media.ts";
import type { Face } from "#features/calls/face.ts";

export const HOSTED_CALL_LIMITS = {
  /** Added to the ringing time: how long a call without any report is waited for. */
  reportMs: 15_000,
  /** From the close of a stream without a stop to the end of its call; a report may say why. */
  graceMs: 1000,
  /** How long the far end has to hear the last words before we hang up or transfer the call. */
  lastWordsMs: 1000,
  /** Delay before a failed hang-up is retried; it doubles with every retry. */
  hangUpAgainMs: 2000,
  hangUpsMax: 8,
  /** How long a call is remembered after its end. */
  memoryMs: 10 * 60_000,
} as const;

export interface HostedCallOptions {
  carrier: HostedCalls;
  /** Our own id of the call, for the log. */
  callId: number;
  type: "inbound" | "outbound";
  /** Our number, shown to the party that a call is transferred to. */
  callerId: string | null;
  /** Where the carrier reports on the call. */
  statusUrl: string;
  publish(event: LegEvent): void;
  /** Called when nobody took a transferred call, which is already over here. */
  transferFailed(): void;
  /** Called when nothing more is expected of the call. */
  forget(): void;
  /** Registers work that a stop of the server waits for. */
  underWay(work: Promise<void>): void;
  system: System;
  log: Logger;
}

const UNDER_WAY: LegEvent["kind"][] = ["ringing", "answered", "transfer_failed"];

/** Whether the call rings, is answered or was left by a failed transfer, and has not ended. */
export const isUnderWay = ({ events }: CallReport): boolean =>
  events.some(({ kind }) => UNDER_WAY.includes(kind))
  && !events.some(({ kind }) => kind === "ended");

const isPassing = (error: unknown): boolean => error instanceof ProviderError && error.retryable;

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

export class HostedCall {
  readonly face: Face;
  readonly #options: HostedCallOptions;
  readonly #progress = createCallProgress();
  /** The carrier's id; null until the carrier has reported it. */
  #carrierId: string | null = null;
  #stream: HostedStream | null = null;
  #hasRung = false;
  #isPickedUp = false;
  #hasStarted = false;
  /** The carrier's report of who answered, when it came before the stream started. */
  #answeredBy: LegEvent | null = null;
  /** The leg is over. What remains is to end the call at the carrier too. */
  #isOver = false;
  /** The call is over at the carrier. */
  #isGone = false;
  /** A hang-up was requested, and was not refused. */
  #isHungUp = false;
  #hangUps = 0;
  #isHandingOn = false;
  #isHandedOn = false;
  #deadline: Timer | null = null;

  constructor(options: HostedCallOptions) {
    this.#options = options;
    this.face = {
      frame: (pcm) => this.#stream?.send(pcm),
      clear: () => {
        this.#stream?.clear();
        // Frames leave in real time: what the carrier has not played yet is next to nothing.
        this.#publish({ kind: "cleared", droppedMs: 0 });
      },
      mark: () => this.#stream?.mark(),
      transcript: () => undefined,
      state: () => undefined,
      functionCall: () => undefined,
      peer: () => undefined,
      over: () => this.#finish(),
      line: {
        dtmf: (digits) => this.#press(digits),
        transfer: (to) => options.underWay(this.#handOn(to)),
      },
    };
  }

  /** Places the call. */
  dial(request: HostedDial): void {
    this.#giveUpAfter(request.ringingMs + HOSTED_CALL_LIMITS.reportMs);
    this.#options.underWay(this.#dial(request));
  }

  async #dial(request: HostedDial): Promise<void> {
    const { carrier, callId, log } = this.#options;
    const dialled = await carrier.dial(request);
    if (dialled.kind === "placed") {
      this.#know(dialled.callId);
      return;
    }
    log.warn({ err: dialled.error, call_id: callId }, "could not place a call");
    // It may ring all the same: a report or its stream brings the id, or the deadline ends it.
    if (dialled.kind === "unknown") return;
    this.#isGone = true;
    this.#end("failed", `the carrier refused it: ${messageOf(dialled.error)}`);
  }

  /** The call came in and is being answered. */
  answering(carrierId: string): void {
    this.#know(carrierId);
    this.#giveUpAfter(HOSTED_MEDIA_LIMITS.startMs);
  }

  /** The carrier did not accept the answer. */
  lost(): void {
    this.#end("failed");
  }

  /** Handles a report of the carrier; reports may come in any order. */
  report(report: CallReport): void {
    const hasEnded = report.events.some(({ kind }) => kind === "ended");
    if (!this.#know(report.callId, hasEnded)) return;
    if (this.#isOver) {
      // Nobody took the transferred call: it is ours again.
      if (report.events.some(({ kind }) => kind === "transfer_failed")) {
        this.#isHandedOn = false;
        this.#options.transferFailed();
      }
      const isLeft = !this.#isGone && !this.#isHandedOn;
      if (isLeft && isUnderWay(report)) this.#hangUp();
      return;
    }
    const { events } = report;
    // A callee who has picked up cannot be heard before the stream starts.
    if (!this.#isPickedUp && events.some(({ kind }) => kind === "answered")) {
      this.#isPickedUp = true;
      if (!this.#hasStarted) this.#giveUpAfter(HOSTED_MEDIA_LIMITS.startMs);
    }
    for (const event of this.#progress.receive(events.filter(({ kind }) => kind !== "answered"))) {
      this.#reported(event);
    }
  }

  /** The call's stream has started; null: the stream is another call's, or comes too late. */
  join(carrierId: string | null, stream: HostedStream): StreamOwner | null {
    if (carrierId !== null && !this.#know(carrierId)) return null;
    if (this.#isOver || this.#hasStarted) return null;
    this.#hasStarted = true;
    this.#stream = stream;
    this.#deadline?.cancel();
    this.#progress.receive([{ kind: "answered" }]);
    this.#publish({ kind: "answered" });
    if (this.#answeredBy) this.#publish(this.#answeredBy);
    return {
      publish: (event) => this.#publish(event),
      over: (end) => this.#streamOver(end),
    };
  }

  // Progress and end

  /** Learns the carrier's id; false: the id is another call's. */
  #know(carrierId: string, hasEnded = false): boolean {
    const isNew = this.#carrierId === null;
    this.#carrierId ??= carrierId;
    if (this.#carrierId !== carrierId) return false;
    this.#isGone ||= hasEnded;
    // The call was over before its id was known, so it could not be hung up then.
    if (isNew && this.#isOver && !this.#isGone) this.#hangUp();
    return true;
  }

  #publish(event: LegEvent): void {
    if (!this.#isOver) this.#options.publish(event);
  }

  #reported(event: LegEvent): void {
    if (event.kind === "ended") return this.#end(this.#causeOf(event.cause));
    if (event.kind === "ringing") this.#hasRung = true;
    if (event.kind === "answered_by" && !this.#hasStarted) this.#answeredBy = event;
    else this.#publish(event);
  }

  /** A call that was picked up and never had sound has failed, whoever hung up. */
  #causeOf(cause: LegEndCause): LegEndCause {
    const isMute = cause === "far_hung_up" && !this.#hasStarted;
    return isMute && this.#options.type === "outbound" ? "failed" : cause;
  }

  #giveUpAfter(delayMs: number): void {
    this.#deadline?.cancel();
    this.#deadline = this.#options.system.after(delayMs, () => {
      if (this.#options.type === "inbound") return this.#end("far_hung_up");
      this.#options.log.warn({ call_id: this.#options.callId },
        "the carrier reports nothing about a call: check that it can reach this server");
      if (this.#hasRung && !this.#isPickedUp) this.#end("no_answer");
      else this.#end("failed", "the carrier reported nothing about it; it may not reach PARLEY_PUBLIC_URL");
    });
  }

  #streamOver(end: StreamEnd): void {
    this.#stream = null;
    // The carrier closes the stream of a call that it transfers.
    if (this.#isOver || this.#isHandingOn) return;
    if (end === "failed") return this.#end("failed");
    if (end === "stopped") {
      this.#isGone = !this.#options.carrier.outlivesStream;
      return this.#end("far_hung_up");
    }
    this.#deadline = this.#options.system.after(
      HOSTED_CALL_LIMITS.graceMs, () => this.#end("far_hung_up"));
  }

  /** Ends the leg, because of its stream, a deadline or a report. */
  #end(cause: LegEndCause, detail?: string): void {
    if (this.#isOver) return;
    this.#options.publish({ kind: "ended", cause, ...(detail === undefined ? {} : { detail }) });
    this.#finish();
  }

  /** Idempotent. */
  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#deadline?.cancel();
    this.#deadline = this.#options.system.after(
      HOSTED_CALL_LIMITS.memoryMs, () => this.#options.forget());
    this.#options.underWay(this.#takeLeave());
  }

  async #takeLeave(): Promise<void> {
    if (!this.#isGone && !this.#isHandedOn) {
      await this.#lastWords();
      await this.#hangUpNow();
    }
    this.#stream?.close();
  }

  async #lastWords(): Promise<void> {
    const { system } = this.#options;
    if (!this.#stream) return;
    await Promise.race([this.#stream.heard(), wait(system, HOSTED_CALL_LIMITS.lastWordsMs)]);
  }

  #hangUp(): void {
    this.#options.underWay(this.#hangUpNow());
  }

  async #hangUpNow(): Promise<void> {
    const { carrier, callId, system, log } = this.#options;
    // Without the carrier's id it cannot be hung up: `#know` does so when the id comes.
    if (this.#carrierId === null || this.#isHungUp || this.#isGone) return;
    this.#isHungUp = true;
    this.#hangUps += 1;
    try {
      await carrier.hangUp(this.#carrierId);
    } catch (error) {
      // A report that the call goes on retries at once; the timer retries if no report comes.
      this.#isHungUp = false;
      log.warn({ err: error, call_id: callId }, "could not hang up a call");
      const { hangUpAgainMs, hangUpsMax } = HOSTED_CALL_LIMITS;
      if (!isPassing(error) || this.#hangUps >= hangUpsMax) return;
      system.after(hangUpAgainMs * 2 ** (this.#hangUps - 1), () => this.#hangUp());
    }
  }

  #press(digits: string): void {
    const { carrier, callId, log } = this.#options;
    if (carrier.sendDtmf === null || this.#carrierId === null) return this.#stream?.dtmf(digits);
    carrier.sendDtmf(this.#carrierId, digits).catch((error: unknown) =>
      log.warn({ err: error, call_id: callId }, "could not send keys"));
  }

  /** Transfers the call. The leg ends either way, since it has said goodbye. */
  async #handOn(to: string): Promise<void> {
    const { carrier, callerId, callId, statusUrl, log } = this.#options;
    if (this.#isOver || this.#isHandingOn || this.#carrierId === null) return;
    this.#isHandingOn = true;
    await this.#lastWords();
    if (this.#isOver) return;
    try {
      await carrier.transfer({ callId: this.#carrierId, to, callerId, statusUrl });
    } catch (error) {
      log.warn({ err: error, call_id: callId }, "could not transfer a call");
      if (this.#stream) {
        return this.#end("failed", `the carrier refused the transfer: ${messageOf(error)}`);
      }
      // The stream is gone: a transfer whose answer was lost took it, or the caller hung up.
      if (!isPassing(error)) return this.#end("far_hung_up");
    }
    this.#isHandedOn = true;
    this.#end("transferred");
  }
}
