// Starts the media thread with the first call, or at once when calls can come in, and passes its
// messages. When the thread dies, its calls end as failed and a new thread is started.
import { Worker } from "node:worker_threads";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import { wait, type System } from "#core/system.ts";
import type { CarrierName, Offer } from "#providers/carriers/port.ts";
import type { PeersConfig } from "#providers/carriers/web/port.ts";
import type { SipListener, TrunkSetup } from "#providers/carriers/sip/trunks/trunk.ts";
import type { SpeechConfig } from "#providers/speech/engines.ts";
import type { FromCarrier, FromMedia, MediaThread, ToCarrier, ToMedia } from "./voice/protocol.ts";

const MEDIA_FILE = workerFile("media");
/** Frames are short-lived. With V8's 48 MiB so many pile up that old objects are collected too. */
const YOUNG_MIB = 12;

export interface MediaWorkerData {
  speech: SpeechConfig;
  logLevel: string;
  /** Null: no calls over SIP. */
  sip: SipListener | null;
  /** Private networks in which trunks may be. */
  reachableNetworks: string[];
  /** Null: no WebRTC; the sound of web calls goes only over their sockets. */
  peers: PeersConfig | null;
}

/** How late ticks of the media clock were; belongs to no call. */
export interface Lateness {
  kind: "lateness";
  ms: number[];
}

interface MediaThreadOptions {
  data: MediaWorkerData;
  /** With them calls can come in too, and none is to wait for the thread to start. */
  hasHostedCarriers: boolean;
  /** All SIP trunks, with their passwords. */
  trunks(): Promise<TrunkSetup[]>;
  onLateness(ms: number): void;
  system: System;
  log: Logger;
}

type Ports = { port: number; tlsPort: number | null };

export function createMediaThread(options: MediaThreadOptions): MediaThread {
  const { data, system } = options;
  const thread = new RunningThread(options);
  const toCarrier = (message: ToCarrier): void => thread.sendToCarrier(message);
  return {
    send: (message: ToMedia) => thread.send(message),
    onMessage: (next) => (thread.onMessage = next),
    onOffer: (next) => (thread.onOffer = next),
    refuse: (carrier, offerId, cause) => toCarrier({ kind: "refuse", carrier, offerId, cause }),
    listen: async () => {
      if (!data.sip && !options.hasHostedCarriers) return null;
      if (data.sip) await thread.loadTrunks();
      thread.start();
      const ports = data.sip ? await thread.listening.promise : null;
      thread.isKept = true;
      return ports;
    },
    trunksChanged: () => thread.loadTrunks(),
    setRoom: (hasRoom) => thread.setRoom(hasRoom),
    close: async () => {
      thread.isKept = false;
      if (data.sip) {
        toCarrier({ kind: "close" });
        if (thread.isRunning) {
          await Promise.race([thread.closed.promise, wait(system, LIMITS.carrierCloseMs)]);
        }
      }
      await thread.stop();
    },
  };
}

/** The buffers that are transferred to the thread instead of copied. */
function soundOf(message: ToMedia): ArrayBuffer[] {
  if (message.kind === "person_audio") return [message.pcm.buffer as ArrayBuffer];
  return message.kind === "leg" && message.event.kind === "audio"
    ? [message.event.pcm.buffer as ArrayBuffer]
    : [];
}

class RunningThread {
  readonly listening = Promise.withResolvers<Ports>();
  readonly closed = Promise.withResolvers<void>();
  onMessage: (message: FromMedia) => void = () => undefined;
  onOffer: (carrier: CarrierName, offer: Offer) => void = () => undefined;
  /** True: the thread is started again when it ends. */
  isKept = false;
  readonly #options: MediaThreadOptions;
  /** Calls that were opened in the thread and are not over. */
  readonly #open = new Set<number>();
  #worker: Worker | null = null;
  /** The trunks as last read; null: not read yet. */
  #trunks: TrunkSetup[] | null = null;
  #loading = Promise.resolve();
  #hasRoom = true;

  constructor(options: MediaThreadOptions) {
    this.#options = options;
    // Nobody awaits it when no calls can come in.
    this.listening.promise.catch(() => undefined);
  }

  get isRunning(): boolean {
    return this.#worker !== null;
  }

  start(): Worker {
    if (this.#worker) return this.#worker;
    const { data, log } = this.#options;
    const worker = new Worker(MEDIA_FILE, {
      workerData: data, resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
    });
    worker.on("message", (message: FromMedia | FromCarrier | Lateness) => this.#receive(message));
    worker.on("error", (error) => {
      log.error({ err: error }, "the media thread failed");
      this.listening.reject(error);
    });
    worker.on("exit", () => this.#lost(worker));
    worker.unref();
    this.#worker = worker;
    this.#sendTrunks();
    this.setRoom(this.#hasRoom);
    return worker;
  }

  async stop(): Promise<void> {
    await this.#worker?.terminate();
  }

  send(message: ToMedia): void {
    if (message.kind === "open") this.#open.add(message.callId);
    else if (!this.#open.has(message.callId)) return;
    this.start().postMessage(message, soundOf(message));
  }

  /** Dropped when no thread runs: without a thread there are no carriers. */
  sendToCarrier(message: ToCarrier): void {
    this.#worker?.postMessage(message);
  }

  setRoom(hasRoom: boolean): void {
    this.#hasRoom = hasRoom;
    this.sendToCarrier({ kind: "room", hasRoom });
  }

  /** Resolves once the thread has the trunks as they are now; never rejects. */
  loadTrunks(): Promise<void> {
    if (!this.#options.data.sip) return Promise.resolve();
    // Reads are serialised, so that an older result never arrives last.
    this.#loading = this.#loading.then(async () => {
      try {
        this.#trunks = await this.#options.trunks();
        this.#sendTrunks();
      } catch (error) {
        this.#options.log.error({ err: error }, "could not read the SIP trunks");
      }
    });
    return this.#loading;
  }

  #sendTrunks(): void {
    if (this.#trunks) this.sendToCarrier({ kind: "trunks", trunks: this.#trunks });
  }

  #receive(message: FromMedia | FromCarrier | Lateness): void {
    switch (message.kind) {
      case "lateness":
        return message.ms.forEach(this.#options.onLateness);
      case "listening":
        return this.listening.resolve({ port: message.port, tlsPort: message.tlsPort });
      case "offer":
        return this.onOffer(message.carrier, message.offer);
      case "closed":
        return this.closed.resolve();
      case "over":
        this.#open.delete(message.callId);
        return this.onMessage(message);
      default:
        return this.onMessage(message);
    }
  }

  #lost(worker: Worker): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    for (const callId of [...this.#open]) {
      this.#open.delete(callId);
      const detail = "the media thread ended";
      const summary = { reason: "speech_failed", cause: "failed", detail, turns: [] } as const;
      this.onMessage({ kind: "over", callId, summary, recordedMs: 0 });
    }
    this.#options.system.after(LIMITS.mediaRestartMs, () => {
      if (this.isKept) this.start();
    });
  }
}
