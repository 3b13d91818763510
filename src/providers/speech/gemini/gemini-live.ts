// Speech to speech over Gemini's Live interface. The vendor ends every connection after some
// minutes, with a warning, and takes new instructions only at the start of one: the session is then
// resumed over a new connection, by the handle that the vendor issues for this, at a moment when
// nobody speaks. A connection that breaks off is replaced in the same way.
import { ProviderError } from "#core/faults.ts";
import type { Timer } from "#core/system.ts";
import { jsonOf } from "#core/values.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { SoundToModel } from "#providers/speech/model-sound.ts";
import type {
  Pcm, SpeechToSpeech, SpeechToSpeechEvent, SpeechToSpeechOptions, SpeechToSpeechSession,
} from "#providers/speech/port.ts";
import { assertKey, socketUrl, VendorSocket } from "#providers/speech/vendor-socket.ts";
import { AUDIO_ENDS, audioMessage, RATE_IN, readMessage, setupOf, type GeminiMessage } from "./gemini-live-wire.ts";
import { GeminiTurns } from "./gemini-turns.ts";

const VENDOR = "Gemini";
const PATH = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";
/** From connecting to the setup's acknowledgement. */
const READY_MS = 10_000;
/** Connections in a row that may break off before the model has heard or said anything. */
const LOSSES_MAX = 3;

export function createGeminiLive(args: VendorArgs): SpeechToSpeech {
  assertKey(args.key);
  liveUrl(args);
  return {
    name: `Gemini Live (${args.model})`,
    open: (options, publish) => new GeminiSession(args, options, publish),
  };
}

/** The vendor takes the key of a WebSocket in its address alone. */
const liveUrl = ({ key, url }: VendorArgs): URL =>
  socketUrl(url, PATH, key === null ? [] : [["key", key]]);

class GeminiSession implements SpeechToSpeechSession {
  readonly #args: VendorArgs;
  #options: SpeechToSpeechOptions;
  readonly #publish: (event: SpeechToSpeechEvent) => void;
  readonly #turns: GeminiTurns;
  readonly #sound: SoundToModel;
  #socket: VendorSocket;
  #deadline: Timer | null = null;
  #isOpen = true;
  #isReady = false;
  #wasReady = false;
  /** The newest handle for resuming the session, and whether it covers the present state. */
  #handle: string | null = null;
  #isHandleFresh = false;
  /** The connection must be replaced: the vendor says so, or the instructions have changed. */
  #isToMove = false;
  #losses = 0;

  constructor(
    args: VendorArgs, options: SpeechToSpeechOptions,
    publish: (event: SpeechToSpeechEvent) => void,
  ) {
    this.#args = args;
    this.#options = options;
    this.#publish = (event) => {
      if (this.#isOpen) publish(event);
    };
    this.#sound = new SoundToModel({ rate: options.rate, wireRate: RATE_IN }, (base64) =>
      this.#send(audioMessage(base64)));
    this.#turns = new GeminiTurns({
      rate: options.rate, speaks: options.speaks, system: args.system, log: args.log,
      publish: this.#publish,
      send: (message) => this.#send(message),
    });
    this.#socket = this.#connect();
  }

  write(pcm: Pcm): void {
    if (this.#isOpen) this.#sound.write(pcm);
  }

  functionResult(callId: string, resultJson: string): void {
    if (this.#isOpen) this.#turns.functionAnswered(callId, resultJson);
  }

  interrupt(): void {
    if (this.#isOpen) this.#turns.interrupt();
  }

  say(text: string): void {
    if (this.#isOpen) this.#turns.say(text);
  }

  sendText(text: string): void {
    if (this.#isOpen) this.#turns.sendText(text);
  }

  instruct(instructions: string, functions: ModelFunction[]): void {
    this.#options = { ...this.#options, instructions, functions };
    this.#isToMove = true;
    this.#moveIfDue();
  }

  finalize(): void {
    if (this.#isOpen && this.#isReady) this.#send(AUDIO_ENDS);
  }

  close(): void {
    this.#isOpen = false;
    this.#deadline?.cancel();
    this.#turns.close();
    this.#sound.keep();
    this.#socket.close();
  }

  #connect(): VendorSocket {
    const { key, model, system } = this.#args;
    const socket: VendorSocket = new VendorSocket({
      vendor: VENDOR, url: liveUrl(this.#args), headers: {}, key, system,
    }, {
      onOpen: () => {
        const name = this.#options.model ?? model;
        this.#send(setupOf(name, this.#options, this.#handle));
        this.#deadline = system.after(READY_MS, () => {
          const text = `${VENDOR} did not accept the call's settings within ${READY_MS} ms`;
          this.#fail(new ProviderError(text, { retryable: true }));
        });
      },
      onText: (text) => this.#read(text),
      // The vendor's JSON comes in binary messages.
      onBinary: (bytes) => this.#read(Buffer.from(bytes).toString()),
      onClose: (error) => this.#lost(error),
    });
    return socket;
  }

  #read(text: string): void {
    const message = readMessage(jsonOf(text));
    if (!message || !this.#isOpen) return;
    if (message.setupComplete) this.#ready();
    if (message.serverContent ?? message.toolCall) this.#losses = 0;
    this.#learn(message);
    this.#turns.receive(message);
    if (this.#isOpen) this.#moveIfDue();
  }

  #ready(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#deadline?.cancel();
    this.#sound.release();
    if (!this.#wasReady) this.#publish({ kind: "ready" });
    this.#wasReady = true;
    this.#turns.ready();
  }

  #learn({ goAway, sessionResumptionUpdate: update }: GeminiMessage): void {
    if (goAway) this.#isToMove = true;
    if (!update) return;
    this.#isHandleFresh = update.resumable === true && Boolean(update.newHandle);
    if (this.#isHandleFresh) this.#handle = update.newHandle ?? null;
  }

  #moveIfDue(): void {
    if (!this.#isToMove || !this.#isReady || !this.#isHandleFresh || !this.#turns.isIdle) return;
    this.#socket.close();
    this.#goOn();
  }

  #goOn(): void {
    this.#isReady = false;
    this.#isToMove = false;
    this.#isHandleFresh = false;
    this.#sound.keep();
    this.#turns.lost();
    this.#socket = this.#connect();
  }

  #lost(error: ProviderError): void {
    if (!this.#isOpen) return;
    // After a connection that was never ready, another one would hardly work.
    if (!this.#isReady || this.#handle === null || !error.retryable) return this.#fail(error);
    this.#losses += 1;
    // What is asked again may be what breaks them.
    if (this.#losses > LOSSES_MAX) return this.#fail(error);
    this.#args.log.warn({ err: error }, "the model session continues over a new connection");
    this.#goOn();
  }

  #send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  #fail(error: ProviderError): void {
    if (!this.#isOpen) return;
    this.#publish({ kind: "failed", error });
    this.close();
  }
}
