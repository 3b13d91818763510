// Which engines hear and speak on a call: what the assistant's settings ask for, as far as this
// server can. Called before a call begins, when it opens, and when it changes the language.
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Capabilities } from "#features/assistants/capabilities.ts";
import { voiceCodeOf, type Catalogs, type Language, type Voice } from "#features/assistants/catalogs.ts";
import { Fault } from "#core/faults.ts";
import type { RealtimeVendor } from "#providers/speech/port.ts";
import type { Hearing } from "./records/records.ts";
import type { EngineCodes } from "./voice/protocol.ts";
import { hintsOf, voiceSettingsOf, type VoiceSettings } from "./voice/settings.ts";

/** How an assistant hears and speaks. */
export interface ChosenVoice {
  settings: VoiceSettings;
  /** English name of the language spoken. */
  language: string;
  engines: EngineCodes;
  hearing: Hearing;
  /** The model hears by itself; null: a recogniser does. */
  realtime: {
    vendor: RealtimeVendor; model: string | null; voice: string | null; gender: Voice["gender"];
    language: string;
  } | null;
}

/** How the far end can send words when this server has no recogniser; a script always does. */
export type GivenWords = Extract<Hearing, "browser" | "typed" | "script">;

interface Wanted {
  /** Set where it is already decided; absent: as the assistant's mode says and this server can. */
  isRealtime?: boolean;
  /** `iso_2` of the language spoken now; absent: the assistant's. */
  language?: string;
  /** What the far end offers; null: only sound. */
  words: GivenWords | null;
}

interface Call extends Wanted {
  isOutbound: boolean;
  /** Titles of the assistant's documents. */
  titles: string[];
}

export interface VoiceChoice {
  /** Returns a sentence when nothing can speak or understand the assistant's language. */
  voiceOf(assistant: Assistant, call: Call): ChosenVoice | string;
  /** The code of the recogniser a call would take; null: none. */
  recogniserOf(assistant: Assistant, words: GivenWords | null): string | null;
  /** The same sentence before there is a call; null: the assistant can talk. */
  whyCannotTalk(assistant: Assistant, words: GivenWords | null): string | null;
}

export interface VoiceChoiceOptions {
  catalogs: Pick<
    Catalogs, "findLanguage" | "findVoice" | "findSynthesizer" | "findTranscriber"
  >;
  can: Pick<
    Capabilities,
    | "synthesizerFor" | "transcriberFor" | "transcriberAbilities" | "whyNothingHears"
    | "whyRealtimeMissing"
  >;
  /** Whether replies are begun before the customer's turn is over. */
  eagerReplies: boolean;
  /** The model that hears by itself for that entry of the catalog; null: none does. */
  realtimeOf(modelId: number | null): { vendor: RealtimeVendor; model: string | null } | null;
}

/** The voice; throws Fault 422 with the sentence when there is none. */
export function demanded(chosen: ChosenVoice | string): ChosenVoice {
  if (typeof chosen === "string") throw new Fault(422, chosen);
  return chosen;
}

export function createVoiceChoice(options: VoiceChoiceOptions): VoiceChoice {
  return {
    voiceOf: (assistant, call) => {
      const engines = enginesFor(options, assistant, call);
      return typeof engines === "string"
        ? engines
        : voiceWith(options, assistant, engines, call);
    },
    recogniserOf: (assistant, words) => {
      const engines = enginesFor(options, assistant, { words });
      return typeof engines === "string" ? null : engines.transcriber;
    },
    whyCannotTalk: (assistant, words) => {
      const engines = enginesFor(options, assistant, { words });
      return typeof engines === "string" ? engines : null;
    },
  };
}

interface Chosen extends EngineCodes {
  /** All languages of the assistant; the one spoken is `language`. */
  known: Language[];
  language: Language;
  voice: Voice;
  hearing: Hearing;
}

/** The engines that speak and understand, or why there are none. */
function enginesFor(
  { catalogs, can }: VoiceChoiceOptions,
  { mode, settings }: Assistant,
  { isRealtime, language: spoken, words }: Wanted,
): Chosen | string {
  const known = [settings.language_id, ...settings.secondary_language_ids]
    .flatMap((id) => catalogs.findLanguage(id) ?? []);
  const language = known.find(({ iso_2: code }) => code === spoken) ?? known[0];
  const voice = catalogs.findVoice(settings.voice_id);
  if (!language || !voice) return "The assistant's language or voice no longer exists.";
  // A caller who types has chosen to: there is no sound to understand.
  const isTyped = words === "typed";
  const hearsItself = !isTyped
    && (isRealtime ?? (mode !== "pipeline" && can.whyRealtimeMissing() === null));
  const speaksItself = hearsItself && mode !== "dualplex";
  const speakerId = settings.synthesizer_provider_id ?? voice.synthesizer_provider_id;
  const synthesizer = can.synthesizerFor(
    language.iso_2, speakerId === null ? null : codeOf(catalogs.findSynthesizer(speakerId)));
  if (!synthesizer && !speaksItself) {
    return `No speech engine of this server can speak ${language.name}.`;
  }
  const earsId = settings.transcriber_provider_id;
  const transcriber = can.transcriberFor(
    language.iso_2, earsId === null ? null : codeOf(catalogs.findTranscriber(earsId)));
  const isWritten = isTyped || words === "script";
  const hearing = hearsItself ? "model" : isWritten || !transcriber ? words : "server";
  if (hearing === null) {
    return `No speech engine of this server can understand ${language.name}. `
      + can.whyNothingHears();
  }
  return {
    known, language, voice, hearing,
    synthesizer: speaksItself ? null : synthesizer,
    transcriber: hearing === "server" ? transcriber : null,
  };
}

const codeOf = (provider: { code: string } | null): string | null => provider?.code ?? null;

function voiceWith(
  { can, realtimeOf, eagerReplies }: VoiceChoiceOptions,
  assistant: Assistant,
  { known, language, voice, hearing, synthesizer, transcriber }: Chosen,
  { isOutbound, titles }: Call,
): ChosenVoice {
  // A browser listens in one language; a caller who types may change it.
  const follows = transcriber === null
    ? hearing !== "browser"
    : can.transcriberAbilities(transcriber).severalLanguages;
  const model = hearing === "model" ? realtimeOf(assistant.settings.multimodal_model_id) : null;
  return {
    language: language.name,
    settings: voiceSettingsOf(assistant, {
      language,
      languages: follows ? [...new Set(known.map(({ iso_2: code }) => code))] : [language.iso_2],
      hints: hintsOf(assistant, titles),
      voice: { voice: voiceCodeOf(voice, synthesizer), gender: voice.gender },
      isOutbound,
      isEager: eagerReplies,
    }),
    engines: { synthesizer, transcriber },
    hearing,
    realtime: model && {
      ...model,
      voice: voiceCodeOf(voice, model.vendor),
      gender: voice.gender,
      language: language.iso_2,
    },
  };
}
