// One connection of realtime-server.ts: its conversation, its ear, its replies.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import type { WebSocket } from "ws";
import { createWaiting } from "#support/waiting.ts";

const WIRE_RATE = 24_000;
const LOUD = 500;
const FRAME = WIRE_RATE / 100;
const EVENTS_KEPT = 2000;

export interface RealtimeReply {
  text: string;
  /** At 24 kHz; not sent in text sessions. */
  pcm?: Int16Array;
  calls?: { name: string; arguments: string }[];
  /** The reply waits for it halfway. */
  hold?: Promise<void>;
}

export interface RealtimeTurn {
  /** The instructions in `response.create`; null: the session's apply. */
  instructions: string | null;
  /** What functions returned since the last reply. */
  outputs: string[];
}

export interface RealtimeScript {
  /** `userText`: what was heard since the last reply. */
  reply(userText: string, turn: RealtimeTurn): RealtimeReply;
  /** The words of the audio; by default they say how long it was. */
  hear(pcm: Int16Array): string;
  /** `beta`: the older names, as Speaches has them. */
  names: "released" | "beta";
  /** The length of audio in one message, and the real time until the next. */
  frameMs: number;
  paceMs: number;
}

export interface ClientEvent {
  type: string;
  [field: string]: unknown;
}

interface NewItem {
  type: string;
  role?: string;
  output?: string;
  content?: { text?: string }[];
}

interface Settings {
  speaks: boolean;
  silenceMs: number;
  creates: boolean;
  interrupts: boolean;
}

interface Running {
  id: string;
  isCancelled: boolean;
}

export class RealtimePeer {
  readonly headers: IncomingHttpHeaders;
  readonly query: URLSearchParams;
  /** What came, without the audio. */
  readonly events: ClientEvent[] = [];
  audioSamples = 0;
  isClosed = false;
  readonly #connection: WebSocket;
  readonly #script: RealtimeScript;
  readonly #itemMs = new Map<string, number>();
  readonly #waiting = createWaiting();
  #settings: Settings = { speaks: true, silenceMs: 500, creates: true, interrupts: true };
  #count = 0;
  #running: Running | null = null;
  #userText = "";
  #outputs: string[] = [];
  #speech: Int16Array[] = [];
  #isSpeech = false;
  #quietMs = 0;

  constructor(connection: WebSocket, request: IncomingMessage, script: RealtimeScript) {
    this.#connection = connection;
    this.#script = script;
    this.headers = request.headers;
    this.query = new URL(request.url ?? "/", "http://realtime").searchParams;
    connection.on("message", (data: Buffer) => {
      this.#take(JSON.parse(data.toString()) as ClientEvent);
      this.#waiting.look();
    });
    connection.on("close", () => {
      this.isClosed = true;
      this.#waiting.look();
    });
    // Reported by "close" as well.
    connection.on("error", () => this.#waiting.look());
    this.#tell("session.created", { session: this.#session({}) });
  }

  /** Those of this type, in order. */
  received(type: string): ClientEvent[] {
    return this.events.filter((event) => event.type === type);
  }

  /** Resolves once it holds; checked whenever something comes in. */
  until(holds: (peer: RealtimePeer) => boolean): Promise<void> {
    return this.#waiting.until(() => holds(this));
  }

  /** Sends data as it is; a Buffer goes as a binary message. */
  send(data: string | Buffer | object): void {
    const isRaw = typeof data === "string" || Buffer.isBuffer(data);
    this.#connection.send(isRaw ? data : JSON.stringify(data));
  }

  /** Ends the connection without a closing frame. */
  cut(): void {
    this.#connection.terminate();
  }

  end(code: number, reason: string): void {
    this.#connection.close(code, reason);
  }

  #id(kind: string): string {
    this.#count += 1;
    return `${kind}_${this.#count}`;
  }

  #tell(type: string, fields: object): void {
    if (this.#connection.readyState !== this.#connection.OPEN) return;
    this.#connection.send(JSON.stringify({ type, event_id: this.#id("event"), ...fields }));
  }

  #refuse(event: ClientEvent, code: string, message: string): void {
    const event_id = event.event_id ?? null;
    const error = { type: "invalid_request_error", code, message, param: null, event_id };
    this.#tell("error", { error });
  }

  get #isBeta(): boolean {
    return this.#script.names === "beta";
  }

  #take(event: ClientEvent): void {
    if (event.type === "input_audio_buffer.append") return this.#hear(String(event.audio));
    if (this.events.length < EVENTS_KEPT) this.events.push(event);
    switch (event.type) {
      case "session.update":
        return this.#update(event);
      case "input_audio_buffer.commit":
        if (this.#isSpeech) return this.#speechEnds(Math.round(this.audioSamples / 24));
        return this.#refuse(event, "input_audio_buffer_commit_empty", "The buffer is empty");
      case "conversation.item.create":
        return this.#addItem(event.item as NewItem);
      case "conversation.item.truncate":
        return this.#truncate(event);
      case "conversation.item.delete":
        return this.#tell("conversation.item.deleted", { item_id: event.item_id });
      case "response.create":
        if (this.#running) {
          const code = "conversation_already_has_active_response";
          return this.#refuse(event, code, "Conversation already has an active response");
        }
        return void this.#respond(event.response as { instructions?: string } | undefined);
      case "response.cancel":
        if (!this.#running) return this.#refuse(event, "response_cancel_not_active", "none active");
        this.#running.isCancelled = true;
        return;
      default:
        return this.#refuse(event, "invalid_value", `Invalid value: '${event.type}'`);
    }
  }

  #session(update: object): object {
    const common = { id: "sess_1", object: "realtime.session", model: this.query.get("model") };
    const usual = this.#isBeta
      ? { modalities: ["text", "audio"], input_audio_format: "pcm16",
        input_audio_transcription: { model: "a-local-whisper" } }
      : { type: "realtime", output_modalities: ["audio"], audio: { input: {}, output: {} } };
    return { ...common, ...usual, ...update };
  }

  #update(event: ClientEvent): void {
    const session = event.session as Record<string, unknown>;
    const audio = session.audio as { input?: Record<string, unknown> } | undefined;
    const isBetaForm = audio === undefined;
    if (isBetaForm !== this.#isBeta) {
      return this.#refuse(event, "unknown_parameter", "Unknown parameter of the other names");
    }
    const detection = (isBetaForm ? session : audio?.input)?.turn_detection as
      { silence_duration_ms: number; create_response: boolean; interrupt_response: boolean };
    const modalities = (session.modalities ?? session.output_modalities) as string[];
    this.#settings = {
      speaks: modalities.includes("audio"),
      silenceMs: detection.silence_duration_ms,
      creates: detection.create_response,
      interrupts: detection.interrupt_response,
    };
    this.#tell("session.updated", { session: this.#session(session) });
  }

  #addItem(item: NewItem): void {
    if (item.type === "function_call_output") this.#outputs.push(item.output ?? "");
    if (item.type === "message" && item.role === "user") this.#userText = item.content?.[0]?.text ?? "";
    this.#added({ id: this.#id("item"), status: "completed", ...item });
  }

  #added(item: object): void {
    const type = this.#isBeta ? "conversation.item.created" : "conversation.item.added";
    this.#tell(type, { previous_item_id: null, item });
  }

  #truncate(event: ClientEvent): void {
    const knownMs = this.#itemMs.get(String(event.item_id));
    if (knownMs === undefined || Number(event.audio_end_ms) > knownMs) {
      return this.#refuse(event, "invalid_value", `Audio content of ${knownMs} ms is shorter`);
    }
    const { audio_end_ms, content_index, item_id } = event;
    this.#tell("conversation.item.truncated", { item_id, content_index, audio_end_ms });
  }

  // The ear

  #hear(base64: string): void {
    const bytes = Buffer.from(base64, "base64");
    const pcm = new Int16Array(bytes.length >> 1);
    Buffer.from(pcm.buffer).set(bytes.subarray(0, pcm.length * 2));
    this.audioSamples += pcm.length;
    for (let at = 0; at < pcm.length; at += FRAME) this.#hearFrame(pcm.slice(at, at + FRAME));
  }

  #hearFrame(frame: Int16Array): void {
    const isLoud = frame.some((sample) => Math.abs(sample) >= LOUD);
    const atMs = Math.round(this.audioSamples / 24);
    if (isLoud && !this.#isSpeech) {
      this.#isSpeech = true;
      this.#speech = [];
      this.#tell("input_audio_buffer.speech_started", { audio_start_ms: atMs, item_id: "item_u" });
      if (this.#settings.interrupts && this.#running) this.#running.isCancelled = true;
    }
    if (!this.#isSpeech) return;
    this.#quietMs = isLoud ? 0 : this.#quietMs + frame.length / 24;
    if (isLoud) this.#speech.push(frame);
    if (this.#quietMs >= this.#settings.silenceMs) this.#speechEnds(atMs);
  }

  #speechEnds(atMs: number): void {
    this.#isSpeech = false;
    this.#quietMs = 0;
    this.#commit(atMs);
  }

  #commit(atMs: number): void {
    const item_id = this.#id("item");
    const pcm = new Int16Array(this.#speech.flatMap((frame) => [...frame]));
    const transcript = this.#script.hear(pcm);
    this.#tell("input_audio_buffer.speech_stopped", { audio_end_ms: atMs, item_id });
    this.#tell("input_audio_buffer.committed", { item_id, previous_item_id: null });
    const content = [{ type: "input_audio", transcript: null }];
    this.#added({ id: item_id, type: "message", role: "user", status: "completed", content });
    const about = { item_id, content_index: 0 };
    for (const delta of transcript.match(/\s*\S+/g) ?? []) {
      this.#tell("conversation.item.input_audio_transcription.delta", { ...about, delta });
    }
    this.#tell("conversation.item.input_audio_transcription.completed", { ...about, transcript });
    this.#userText = transcript;
    // Like the original, it does not answer what was said while it was replying.
    if (this.#settings.creates && !this.#running) void this.#respond(undefined);
  }

  // The replies

  async #respond(wanted: { instructions?: string } | undefined): Promise<void> {
    const running: Running = { id: this.#id("resp"), isCancelled: false };
    this.#running = running;
    const turn = { instructions: wanted?.instructions ?? null, outputs: this.#outputs };
    const reply = this.#script.reply(this.#userText, turn);
    this.#userText = "";
    this.#outputs = [];
    const about = { id: running.id, object: "realtime.response", status_details: null };
    this.#tell("response.created", { response: { ...about, status: "in_progress", output: [] } });
    const output: object[] = [];
    if (reply.text !== "") output.push(await this.#speak(running, reply));
    else await reply.hold;
    for (const call of reply.calls ?? []) {
      if (!running.isCancelled) output.push(this.#call(running, call, output.length));
    }
    this.#running = null;
    const status = running.isCancelled ? "cancelled" : "completed";
    const usage = { total_tokens: 30, input_tokens: 20, output_tokens: 10 };
    this.#tell("response.done", {
      response: { ...about, status, output, ...(this.#isBeta ? {} : { usage }) },
    });
  }

  #call(running: Running, call: { name: string; arguments: string }, index: number): object {
    const item = { id: this.#id("item"), type: "function_call", call_id: this.#id("call"), ...call };
    const about = { response_id: running.id, output_index: index };
    const begun = { ...item, status: "in_progress", arguments: "" };
    this.#tell("response.output_item.added", { ...about, item: begun });
    const inCall = { ...about, item_id: item.id, call_id: item.call_id };
    this.#tell("response.function_call_arguments.delta", { ...inCall, delta: call.arguments });
    const name = this.#isBeta ? {} : { name: call.name };
    this.#tell("response.function_call_arguments.done",
      { ...inCall, ...name, arguments: call.arguments });
    const done = { ...item, status: "completed" };
    this.#tell("response.output_item.done", { ...about, item: done });
    return done;
  }

  async #speak(running: Running, reply: RealtimeReply): Promise<object> {
    const { speaks } = this.#settings;
    const item_id = this.#id("item");
    const item = { id: item_id, object: "realtime.item", type: "message", role: "assistant" };
    const about = { response_id: running.id, output_index: 0 };
    const inPart = { ...about, item_id, content_index: 0 };
    const added = { ...item, status: "in_progress", content: [] };
    this.#tell("response.output_item.added", { ...about, item: added });
    this.#added(added);
    const prefix = this.#isBeta ? "response." : "response.output_";
    const words = reply.text.match(/\s*\S+/g) ?? [];
    const frames = speaks ? framesOf(reply.pcm ?? new Int16Array(0), this.#script.frameMs) : [];
    const steps = Math.max(words.length, frames.length);
    for (let step = 0; step < steps && !running.isCancelled; step += 1) {
      if (step === steps >> 1) await reply.hold;
      if (running.isCancelled) break;
      const delta = words[step];
      const kind = speaks ? "audio_transcript" : "text";
      if (delta !== undefined) this.#tell(`${prefix}${kind}.delta`, { ...inPart, delta });
      const frame = frames[step];
      if (frame) this.#sendFrame(`${prefix}audio.delta`, inPart, frame);
      if (this.#script.paceMs > 0) await delay(this.#script.paceMs, undefined, { ref: false });
      else await nextTurn();
    }
    if (speaks) this.#tell(`${prefix}audio.done`, inPart);
    const done = { ...item, status: running.isCancelled ? "incomplete" : "completed" };
    this.#tell("response.output_item.done", { ...about, item: { ...done, content: [] } });
    return done;
  }

  #sendFrame(type: string, about: { item_id: string }, frame: Int16Array): void {
    const { item_id } = about;
    this.#itemMs.set(item_id, (this.#itemMs.get(item_id) ?? 0) + frame.length / 24);
    const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
    this.#tell(type, { ...about, delta: bytes.toString("base64") });
  }
}

function framesOf(pcm: Int16Array, frameMs: number): Int16Array[] {
  const size = (WIRE_RATE * frameMs) / 1000;
  const count = Math.ceil(pcm.length / size);
  return Array.from({ length: count }, (_, at) => pcm.subarray(at * size, (at + 1) * size));
}
