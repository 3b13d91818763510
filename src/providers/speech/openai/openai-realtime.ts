// Speech to speech over OpenAI's Realtime protocol: OpenAI itself, and servers that speak it with
// today's names or the earlier ones (Speaches). A session that loses its connection has failed: the
// conversation is kept by the server and goes with it.
import { ProviderError } from "#core/faults.ts";
import type { Timer } from "#core/system.ts";
import { errorText } from "#providers/error-text.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import { keyHeaders } from "#providers/openai-server.ts";
import { jsonOf } from "#core/values.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { SoundToModel } from "#providers/speech/model-sound.ts";
import { Replies } from "./openai-realtime-replies.ts";
import {
  readEvent, settingsOf, WIRE_RATE, type RealtimeEvent, type SettingsOptions,
} from "./openai-realtime-wire.ts";
import type {
  Pcm, SpeechToSpeech, SpeechToSpeechEvent, SpeechToSpeechOptions, SpeechToSpeechSession,
} from "#providers/speech/port.ts";
import { assertKey, socketUrl, VendorSocket } from "#providers/speech/vendor-socket.ts";

/** From connecting to the acknowledgement of the settings. */
const READY_MS = 10_000;
const USER_TEXT_CHARS_MAX = 8192;
const COMPLAINTS_LOGGED_MAX = 20;
const SETTINGS_EVENT = "settings";

export function createOpenAiRealtime(args: VendorArgs): SpeechToSpeech {
  assertKey(args.key);
  realtimeUrl(args, args.model);
  return {
    name: `OpenAI Realtime (${args.model})`,
    open: (options, publish) => new RealtimeSession(args, options, publish),
  };
}

function realtimeUrl({ url }: VendorArgs, model: string): URL {
  const { pathname } = new URL(url);
  return socketUrl(url, pathname === "/" ? "/v1/realtime" : "/realtime", [["model", model]]);
}

class RealtimeSession implements SpeechToSpeechSession {
  readonly #args: VendorArgs;
  #options: SpeechToSpeechOptions;
  readonly #publish: (event: SpeechToSpeechEvent) => void;
  readonly #socket: VendorSocket;
  readonly #replies: Replies;
  readonly #sound: SoundToModel;
  #deadline: Timer | null = null;
  #isOpen = true;
  #isReady = false;
  #events = 0;
  #heard = { itemId: "", text: "" };
  /** Null until the server's first event tells its dialect. */
  #wire: Omit<SettingsOptions, "session"> | null = null;
  #complaint = "";
  #complaints = 0;

  constructor(
    args: VendorArgs,
    options: SpeechToSpeechOptions,
    publish: (event: SpeechToSpeechEvent) => void,
  ) {
    const { key, log, system } = args;
    this.#args = args;
    this.#options = options;
    this.#publish = (event) => {
      if (this.#isOpen) publish(event);
    };
    this.#sound = new SoundToModel({ rate: options.rate, wireRate: WIRE_RATE }, (audio) =>
      this.#socket.send(JSON.stringify({ type: "input_audio_buffer.append", audio })));
    this.#replies = new Replies({
      rate: options.rate,
      speaks: options.speaks,
      log,
      publish: this.#publish,
      send: (event) => this.#send(event),
    });
    this.#socket = new VendorSocket({
      vendor: "The realtime model",
      url: realtimeUrl(args, options.model ?? args.model),
      headers: keyHeaders(args.url, key),
      key,
      system,
    }, {
      onOpen: () => this.#opened(),
      onText: (text) => this.#read(text),
      onClose: (error) => this.#fail(error),
    });
  }

  write(pcm: Pcm): void {
    if (this.#isOpen) this.#sound.write(pcm);
  }

  functionResult(callId: string, resultJson: string): void {
    if (this.#isOpen) this.#replies.functionAnswered(callId, resultJson);
  }

  interrupt(heard: Parameters<SpeechToSpeechSession["interrupt"]>[0]): void {
    if (this.#isOpen) this.#replies.interrupted(heard);
  }

  instruct(instructions: string, functions: ModelFunction[]): void {
    this.#options = { ...this.#options, instructions, functions };
    if (this.#isOpen && this.#wire) {
      this.#send({ type: "session.update", session: this.#settings(this.#wire) });
    }
  }

  say(text: string): void {
    if (this.#isOpen) this.#replies.say(text);
  }

  sendText(text: string): void {
    if (this.#isOpen) this.#replies.sendText(text);
  }

  /** The vendor's ear waits for a silence, which does not come: it is told that speech has ended. */
  finalize(): void {
    if (this.#isOpen && this.#isReady) this.#send({ type: "input_audio_buffer.commit" });
  }

  close(): void {
    this.#end();
    this.#socket.close();
  }

  #opened(): void {
    this.#deadline = this.#args.system.after(READY_MS, () => {
      const why = this.#complaint === "" ? `within ${READY_MS} ms` : `(${this.#complaint})`;
      const message = `The realtime model did not accept the call's settings ${why}`;
      this.#fail(new ProviderError(message, { retryable: this.#complaint === "" }));
    });
  }

  #read(text: string): void {
    const event = readEvent(jsonOf(text));
    if (event && this.#isOpen) this.#handle(event);
  }

  #handle(event: RealtimeEvent): void {
    switch (event.kind) {
      case "created":
        return this.#created(event);
      case "updated":
        return this.#ready();
      case "speech_start":
      case "speech_end":
        return this.#publish({ kind: event.kind });
      case "committed":
        return this.#replies.committed();
      case "user_delta":
      case "user_text":
        return this.#userText(event);
      case "response_start":
        return this.#replies.started(event.responseId);
      case "audio":
        return this.#replies.audio(event);
      case "text":
        return this.#replies.text(event);
      case "function_named":
        return this.#replies.functionNamed(event.itemId, event.name);
      case "function":
        return this.#replies.functionCalled(event.responseId, event.call);
      case "response_end":
        if (event.failure) this.#warn(event.failure);
        return this.#replies.ended(event);
      case "error":
        return this.#complained(event);
    }
  }

  #created({ dialect, transcriptionModel }: Extract<RealtimeEvent, { kind: "created" }>): void {
    if (this.#isReady) return;
    this.#wire = { dialect, transcriptionModel };
    const session = this.#settings(this.#wire);
    this.#socket.send(
      JSON.stringify({ type: "session.update", event_id: SETTINGS_EVENT, session }));
  }

  #settings(wire: Omit<SettingsOptions, "session">): object {
    return settingsOf({ ...wire, session: this.#options });
  }

  #ready(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#deadline?.cancel();
    this.#sound.release();
    this.#publish({ kind: "ready" });
    this.#replies.ready();
  }

  #send(event: { type: string; [field: string]: unknown }): string {
    this.#events += 1;
    const eventId = `e${this.#events}`;
    this.#socket.send(JSON.stringify({ ...event, event_id: eventId }));
    return eventId;
  }

  /** Pieces are joined: each partial text is all that was heard of the item. */
  #userText(event: Extract<RealtimeEvent, { kind: "user_delta" | "user_text" }>): void {
    if (event.kind === "user_text") {
      this.#heard = { itemId: "", text: "" };
      const text = event.text.slice(0, USER_TEXT_CHARS_MAX);
      return this.#publish({ kind: "user_text", text, isFinal: true });
    }
    const before = this.#heard.itemId === event.itemId ? this.#heard.text : "";
    const text = `${before}${event.text}`.slice(0, USER_TEXT_CHARS_MAX);
    this.#heard = { itemId: event.itemId, text };
    if (text !== before) this.#publish({ kind: "user_text", text, isFinal: false });
  }

  /** Most complaints leave the session as it is; only refused settings end it. */
  #complained(event: Extract<RealtimeEvent, { kind: "error" }>): void {
    const complaint = errorText(event.detail, this.#args.key);
    if (!this.#isReady && event.eventId === SETTINGS_EVENT) {
      const message = `The realtime model refused the call's settings: ${complaint}`;
      return this.#fail(new ProviderError(message, { retryable: false }));
    }
    if (!this.#isReady) this.#complaint = complaint;
    if (!this.#replies.failed(event)) this.#warn(event);
  }

  #warn({ code, detail }: { code: string; detail: unknown }): void {
    this.#complaints += 1;
    if (this.#complaints > COMPLAINTS_LOGGED_MAX) return;
    const complaint = errorText(detail, this.#args.key);
    this.#args.log.warn({ code, complaint }, "the realtime model reported an error");
  }

  #fail(error: ProviderError): void {
    if (!this.#isOpen) return;
    this.#publish({ kind: "failed", error });
    this.close();
  }

  #end(): void {
    this.#isOpen = false;
    this.#deadline?.cancel();
    this.#sound.keep();
  }
}
