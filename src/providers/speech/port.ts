// The ports speech engines stand behind: recognition, synthesis, speech to speech, voice activity.
// All run in the media thread, are opened once per call (or per utterance), never throw once open
// and report everything through one handler, in order, within the call that caused it or later.
// Audio is mono 16-bit PCM at the rate named when opened. Adaptors are in this folder.
import type { ProviderError } from "#core/faults.ts";
import type { ModelFunction } from "#providers/models/port.ts";

export type Pcm = Int16Array;

export interface TranscriptionOptions {
  /** Samples per second of what is written: 8000 or 16000. */
  rate: number;
  /** `iso_2` code of the language spoken. */
  language: string;
  /** All languages the speaker may change to, `language` included; some engines take only that. */
  languages: string[];
  /** Words the speaker is likely to say. */
  hints: string[];
}

/**
 * Recognition of one speaker. Text comes in pieces: `partial` replaces the partial before it;
 * `final` closes the piece, and partials after it begin a new one.
 */
export type TranscriptEvent =
  | { kind: "partial"; text: string }
  /** `language` is `iso_2`; it comes only from engines that tell several languages apart. */
  | { kind: "final"; text: string; language?: string }
  /**
   * The speaker has finished; comes after the last `final` of the turn, and only from engines that
   * detect turns.
   */
  | { kind: "end_of_turn" }
  /** The speaker has probably finished with the words so far; more may follow all the same. */
  | { kind: "end_of_turn_likely" }
  /** Another engine goes on with the stream, which may differ from the first in this. */
  | { kind: "replaced"; detectsTurns: boolean }
  /** The stream is over; nothing follows. */
  | { kind: "failed"; error: ProviderError };

export interface TranscriberStream {
  /**
   * How much of the audio written is covered by final texts, the one being reported included;
   * absent: the engine does not say.
   */
  readonly coveredMs?: number;
  /** Any number of samples; the array is not kept. */
  write(pcm: Pcm): void;
  /**
   * The probability of speech, for each frame of the audio written before; absent: the engine does
   * not use it.
   */
  voiced?(probability: number, frameMs: number): void;
  /** The speaker has stopped: a `final` for all audio written follows promptly, maybe empty. */
  finalize(): void;
  /** Idempotent; nothing is reported afterwards. */
  close(): void;
}

export interface Transcriber {
  /** Shown to people, e.g. `PocketSphinx (demo)`. */
  readonly name: string;
  /** Whether it reports turns itself (`end_of_turn`). */
  readonly detectsTurns: boolean;
  /** Its words come as text from elsewhere, not from the audio written. */
  readonly wordsAreTold?: boolean;
  open(options: TranscriptionOptions, publish: (event: TranscriptEvent) => void): TranscriberStream;
}

export interface SynthesisOptions {
  /** Samples per second wanted: 8000, 16000 or 24000; adaptors resample where they must. */
  rate: number;
  /** What the vendor calls the voice; null: the engine's own default for the language. */
  voice: string | null;
  gender: "male" | "female";
  /** `iso_2` code. */
  language: string;
  /** 0.7 to 1.2; 1 is the voice's own pace. */
  speed: number;
  /** 0 to 1 both. */
  stability: number;
  similarity: number;
  /** Livelier than the voice's even tone, where the engine can. */
  hasEmotion: boolean;
  /** All of it will be said in the same words again, so that its audio may be kept. */
  isFixed?: boolean;
}

export type SynthesisEvent =
  | { kind: "audio"; pcm: Pcm }
  /**
   * All audio so far speaks the first `chars` UTF-16 units of all text written to the stream.
   * Comes at least after the audio of every write, oftener from engines that time their words.
   */
  | { kind: "spoken"; chars: number }
  /** All that was written before `end` has been reported. Nothing follows. */
  | { kind: "done" }
  /** The stream is over; nothing follows. */
  | { kind: "failed"; error: ProviderError };

/** One utterance: a reply, sentence by sentence. */
export interface SynthesisStream {
  /**
   * A sentence or a clause as it was written, with the white space that follows it. Never splits a
   * word. How it is said is the engine's side: see spoken/spoken.ts, which stands before them all.
   */
  write(text: string): void;
  /** No more text will come. */
  end(): void;
  /** Idempotent; nothing is reported afterwards, and work not yet begun is dropped. */
  cancel(): void;
}

export interface Synthesizer {
  readonly name: string;
  open(options: SynthesisOptions, publish: (event: SynthesisEvent) => void): SynthesisStream;
}

/** Vendors of models that hear and speak by themselves, best first. */
export const REALTIME_VENDORS = ["openai", "gemini"] as const;
export type RealtimeVendor = (typeof REALTIME_VENDORS)[number];

export interface SpeechToSpeechOptions {
  /** What the vendor calls the model; null: the server's own setting. */
  model: string | null;
  instructions: string;
  /** What the vendor calls the voice; null: its default. */
  voice: string | null;
  gender: "male" | "female";
  language: string;
  functions: ModelFunction[];
  /** Samples per second of audio in and out: 8000, 16000 or 24000. */
  rate: number;
  /** False: replies come as text for a voice of the call's own (dualplex). */
  speaks: boolean;
  temperature: number;
  /** Silence in milliseconds after which the model takes its turn. */
  silenceMs: number;
  /** 0 to 1; above it is speech. */
  threshold: number;
}

/** Ids of items are the vendor's; one item is one reply's words. */
export type SpeechToSpeechEvent =
  | { kind: "ready" }
  | { kind: "speech_start" }
  | { kind: "speech_end" }
  | { kind: "user_text"; text: string; isFinal: boolean }
  | { kind: "reply_start" }
  | { kind: "audio"; itemId: string; pcm: Pcm }
  /** A piece of what the reply says, in order. */
  | { kind: "text"; itemId: string; text: string }
  | { kind: "function_call"; callId: string; name: string; argumentsJson: string }
  | { kind: "reply_end" }
  | { kind: "failed"; error: ProviderError };

export interface SpeechToSpeechSession {
  write(pcm: Pcm): void;
  /** Answers a `function_call`; when all of a reply's calls are answered the model goes on. */
  functionResult(callId: string, resultJson: string): void;
  /**
   * The person interrupted the reply in progress: nothing more of it follows. `heard`: the model
   * learns that only so much of the item was heard; null: nothing was.
   */
  interrupt(heard: { itemId: string; playedMs: number; text: string } | null): void;
  /** Makes the model say this, in these words as nearly as it can. */
  say(text: string): void;
  /** Words of the person in another form, e.g. keys pressed; the model answers them. */
  sendText(text: string): void;
  /** Replaces the instructions and functions from now on. */
  instruct(instructions: string, functions: ModelFunction[]): void;
  /** No more audio follows: what was said is reported in words now, and no more need be said. */
  finalize(): void;
  close(): void;
}

export interface SpeechToSpeech {
  readonly name: string;
  open(
    options: SpeechToSpeechOptions,
    publish: (event: SpeechToSpeechEvent) => void,
  ): SpeechToSpeechSession;
}

/** Voice activity of one speaker. */
export interface VadStream {
  /** Exactly `frameSamples` samples. Its probability comes within the call or later, in order. */
  push(frame: Pcm): void;
  close(): void;
}

export interface Vad {
  readonly name: string;
  /** Samples per frame at 8000 and 16000. */
  frameSamples(rate: 8000 | 16000): number;
  /** Probability from 0 to 1 that the frame is speech. */
  open(rate: 8000 | 16000, publish: (probability: number) => void): VadStream;
}

/** What one speaker says, without the noise. */
export interface NoiseFilterStream {
  /** Any number of samples; the array is not changed. */
  write(pcm: Pcm): void;
  /** Idempotent; nothing is published afterwards. */
  close(): void;
}

/** Tells by its sound whether a speaker has finished. */
export interface TurnEndModel {
  /**
   * `pcm`: the turn so far, with the pause it may end with. `publish` receives from 0 (goes on) to
   * 1 (has finished), or nothing where the model cannot say or has too much to do.
   */
  judge(pcm: Pcm, rate: number, publish: (probability: number) => void): void;
}

/** Takes noise out of what the recogniser hears; the recording keeps it. */
export interface NoiseFilter {
  /** All that is written is published in order, within the call or later, filtered or not. */
  open(rate: number, publish: (pcm: Pcm) => void): NoiseFilterStream;
}

/** The engines that a call uses. */
export interface CallEngines {
  /**
   * Throw a ProviderError for a code they cannot serve. Where the engine fails in the middle of a
   * call, the others that are set up go on.
   */
  synthesizer(code: string): Synthesizer;
  transcriber(code: string): Transcriber;
  speechToSpeech(vendor: RealtimeVendor): SpeechToSpeech;
  vad: Vad;
  noiseFilter: NoiseFilter | null;
  /** Null: turns end by their words and silence alone. */
  turnEnds: TurnEndModel | null;
}
