// The settings of an assistant that concern time and sound, in milliseconds and gains: made by the
// main thread when a call begins, sent to the media thread. The meaning of every sensitivity is
// here.
import type { Assistant } from "#features/assistants/assistants.ts";
import type { AmbienceKind } from "#audio/kinds.ts";
import type { Language } from "#features/assistants/catalogs.ts";
import type { AssistantSettings, FillerConfig } from "#features/assistants/settings.ts";
import { LIMITS } from "#core/limits.ts";
import type { SynthesisOptions } from "#providers/speech/port.ts";
import type { EndReason } from "#features/calls/records/records.ts";

/** The few sentences a call says by itself, for which the owner has written none. */
interface Phrases {
  stillThere: string;
  again: string;
  timeIsUp: string;
  leaving: string;
  sorry: string;
  notConnected: string;
  takeCall: string;
}

/** The last words of a call that ends by itself. */
export const goodbyeOf = (phrases: Phrases, reason: EndReason): string =>
  phrases[reason === "server_restarted" ? "leaving" : "timeIsUp"];

export interface VoiceSettings {
  /** `iso_2`. */
  language: string;
  /** All languages that may be spoken, including `language`. */
  languages: string[];
  /** What the customer is likely to say. */
  hints: string[];
  phrases: Phrases;
  endpoint: { type: "vad" | "ai"; silenceMs: number };
  interrupt: { allowed: boolean; threshold: number; confirmMs: number; wordsMin: number };
  /** Replies are begun before the customer's turn is over. */
  isEager: boolean;
  waitForCustomer: boolean;
  /** Every call is greeted in the same words. */
  greetsAlike: boolean;
  maxDurationMs: number;
  /** Silence until the customer is spoken to again, then between further attempts. */
  maxSilenceMs: number;
  reengageEveryMs: number;
  /** Until a call whose customer never speaks is ended; null: it is not. */
  maxInitialSilenceMs: number | null;
  /** Null: none are played. */
  fillers: FillerConfig | null;
  ambience: { kind: AmbienceKind; gain: number } | null;
  /** Null: where it helps, which on a telephone line it does not. */
  filtersNoise: boolean | null;
  /** `message`: left when the machine's greeting is over; `ends`: the call is over then. */
  voicemail: { detects: boolean; message: string | null; ends: boolean };
  /** What a model that hears by itself is to do in a silence; null: it says a fixed sentence. */
  reengagePrompt: string | null;
  keypad: { timeoutMs: number; stopKey: string };
  records: boolean;
  voice: Omit<SynthesisOptions, "rate">;
}

/** A note the model receives as if the customer had said it. */
export const silenceNote = (prompt: string): string => `[The customer has been silent. ${prompt}]`;

const ENDPOINT_SLOWEST_MS = 1200;
const ENDPOINT_RANGE_MS = 900;
const CONFIRM_SLOWEST_MS = 200;
const CONFIRM_RANGE_MS = 140;
const THRESHOLD_HIGHEST = 0.8;
const THRESHOLD_RANGE = 0.4;
const KEYPAD_DEFAULT = { timeout: 5, stop_key: "#" } as const;

/** The contract lets sensitivities go to 5; beyond 1 nothing gets more sensitive. */
const share = (sensitivity: number): number => Math.min(1, Math.max(0, sensitivity));

/** Whether it matters who has answered: a person or a machine. */
export const mindsVoicemail = (settings: AssistantSettings): boolean =>
  settings.end_call_on_voicemail || settings.voice_mail_message !== null;

const TELEPHONE_RATE = 8000;

/**
 * Whether sound passes the noise filter before it is recognised. Without a setting: not at a
 * telephone's rate, where the filter lost words of clean speech for all voices tried (28 % wrong
 * against 22 %).
 */
export const isNoiseFiltered = ({ filtersNoise }: VoiceSettings, rate: number): boolean =>
  filtersNoise ?? rate > TELEPHONE_RATE;

const HINT_CHARS_MAX = 60;
const HINT_WORDS_MAX = 5;

/** What callers of this assistant are likely to say; the owner's own list goes first. */
export function hintsOf(
  { name, settings }: Pick<Assistant, "name" | "settings">, titles: string[],
): string[] {
  // Long texts are sentences, which are no help.
  const short = [name, ...Object.values(settings.variables), ...titles]
    .map((text) => text.replace(/\.[a-z0-9]{2,4}$/i, "").trim())
    .filter((text) => /\p{L}/u.test(text) && text.length <= HINT_CHARS_MAX
      && text.split(/\s+/).length <= HINT_WORDS_MAX && !/:\/\//.test(text));
  return [...new Set([...settings.recogniser_hints, ...short])].slice(0, LIMITS.recogniserHintsMax);
}

const phrasesOf = ({ phrases }: Language): Phrases => ({
  stillThere: phrases.still_there,
  again: phrases.again,
  timeIsUp: phrases.time_is_up,
  leaving: phrases.leaving,
  sorry: phrases.sorry,
  notConnected: phrases.not_connected,
  takeCall: phrases.take_call,
});

export function voiceSettingsOf(
  { settings }: Assistant,
  known: {
    language: Language;
    languages: string[];
    hints: string[];
    voice: Pick<SynthesisOptions, "voice" | "gender">;
    isOutbound: boolean;
    isEager: boolean;
  },
): VoiceSettings {
  const { iso_2: language, fillers } = known.language;
  const interrupting = share(settings.interrupt_sensitivity);
  const keypad = settings.tools.find(({ type }) => type === "collect_keypad");
  const { timeout = KEYPAD_DEFAULT.timeout, stop_key: stopKey = KEYPAD_DEFAULT.stop_key } =
    keypad?.type === "collect_keypad" ? keypad : KEYPAD_DEFAULT;
  return {
    language,
    languages: known.languages,
    hints: known.hints,
    phrases: phrasesOf(known.language),
    endpoint: {
      type: settings.endpoint_type,
      silenceMs: ENDPOINT_SLOWEST_MS - ENDPOINT_RANGE_MS * share(settings.endpoint_sensitivity),
    },
    interrupt: {
      allowed: settings.allow_interruptions,
      threshold: THRESHOLD_HIGHEST - THRESHOLD_RANGE * interrupting,
      confirmMs: CONFIRM_SLOWEST_MS - CONFIRM_RANGE_MS * interrupting,
      wordsMin: settings.min_interrupt_words,
    },
    // Words may change the language of the reply, which is not begun before all are said.
    isEager: known.isEager && known.languages.length < 2,
    waitForCustomer: settings.wait_for_customer,
    greetsAlike: !settings.initial_message.includes("{{"),
    maxDurationMs: settings.max_duration * 1000,
    maxSilenceMs: settings.max_silence_duration * 1000,
    reengageEveryMs: settings.reengagement_interval * 1000,
    maxInitialSilenceMs: settings.max_initial_silence_duration === null
      ? null
      : settings.max_initial_silence_duration * 1000,
    fillers: settings.fillers ? { ...fillers, ...settings.filler_config } : null,
    ambience: settings.ambient_sound === "off"
      ? null
      : { kind: settings.ambient_sound, gain: settings.ambient_sound_volume * 2 },
    filtersNoise: settings.enable_noise_cancellation,
    voicemail: {
      detects: known.isOutbound && mindsVoicemail(settings),
      message: settings.voice_mail_message,
      ends: settings.end_call_on_voicemail,
    },
    reengagePrompt: settings.reengagement_prompt,
    keypad: { timeoutMs: timeout * 1000, stopKey },
    records: settings.record,
    voice: {
      ...known.voice,
      language,
      speed: settings.speech_speed,
      stability: settings.voice_stability,
      similarity: settings.voice_similarity,
      hasEmotion: settings.tts_emotion_enabled,
    },
  };
}
