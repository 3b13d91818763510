// What of an assistant's settings concerns time and sound, in milliseconds and gains: made by the
// main thread when a call begins, sent to the media thread. The meaning of every sensitivity is
// here.
import type { Assistant } from "../../assistants/assistants.ts";
import type { AmbienceKind } from "../../audio/kinds.ts";
import type { FillerConfig } from "../../assistants/settings.ts";
import type { SynthesisOptions } from "../../providers/speech/port.ts";

export interface VoiceSettings {
  /** `iso_2`. */
  language: string;
  endpoint: { type: "vad" | "ai"; silenceMs: number };
  interrupt: { allowed: boolean; threshold: number; confirmMs: number; wordsMin: number };
  waitForCustomer: boolean;
  maxDurationMs: number;
  /** Silence until the customer is spoken to again, then between further attempts. */
  maxSilenceMs: number;
  reengageEveryMs: number;
  /** Until a call whose customer never speaks is ended; null: it is not. */
  maxInitialSilenceMs: number | null;
  /** Null: none are played. */
  fillers: FillerConfig | null;
  ambience: { kind: AmbienceKind; gain: number } | null;
  filtersNoise: boolean;
  voicemail: { detects: boolean; message: string | null };
  keypad: { timeoutMs: number; stopKey: string };
  records: boolean;
  voice: Omit<SynthesisOptions, "rate">;
}

const ENDPOINT_SLOWEST_MS = 1200;
const ENDPOINT_RANGE_MS = 900;
const CONFIRM_SLOWEST_MS = 400;
const CONFIRM_RANGE_MS = 300;
const THRESHOLD_HIGHEST = 0.8;
const THRESHOLD_RANGE = 0.4;
const KEYPAD_DEFAULT = { timeout: 5, stop_key: "#" } as const;

/** The contract lets sensitivities go to 5; beyond 1 nothing gets more sensitive. */
const share = (sensitivity: number): number => Math.min(1, Math.max(0, sensitivity));

export function voiceSettingsOf(
  { settings }: Assistant,
  known: {
    language: string;
    fillers: FillerConfig;
    voice: Omit<SynthesisOptions, "rate" | "language" | "speed" | "stability" | "similarity">;
    isOutbound: boolean;
  },
): VoiceSettings {
  const interrupting = share(settings.interrupt_sensitivity);
  const keypad = settings.tools.find(({ type }) => type === "collect_keypad");
  const { timeout = KEYPAD_DEFAULT.timeout, stop_key: stopKey = KEYPAD_DEFAULT.stop_key } =
    keypad?.type === "collect_keypad" ? keypad : KEYPAD_DEFAULT;
  return {
    language: known.language,
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
    waitForCustomer: settings.wait_for_customer,
    maxDurationMs: settings.max_duration * 1000,
    maxSilenceMs: settings.max_silence_duration * 1000,
    reengageEveryMs: settings.reengagement_interval * 1000,
    maxInitialSilenceMs: settings.max_initial_silence_duration === null
      ? null
      : settings.max_initial_silence_duration * 1000,
    fillers: settings.fillers ? { ...known.fillers, ...settings.filler_config } : null,
    ambience: settings.ambient_sound === "off"
      ? null
      : { kind: settings.ambient_sound, gain: settings.ambient_sound_volume * 2 },
    filtersNoise: settings.enable_noise_cancellation,
    voicemail: {
      detects: known.isOutbound && settings.end_call_on_voicemail,
      message: settings.voice_mail_message,
    },
    keypad: { timeoutMs: timeout * 1000, stopKey },
    records: settings.record,
    voice: {
      ...known.voice,
      language: known.language,
      speed: settings.speech_speed,
      stability: settings.voice_stability,
      similarity: settings.voice_similarity,
    },
  };
}
