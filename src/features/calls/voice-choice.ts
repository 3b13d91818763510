// How an assistant hears and speaks on a call.
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Hearing } from "./records.ts";
import type { EngineCodes } from "./voice/protocol.ts";
import type { VoiceSettings } from "./voice/settings.ts";

/** How an assistant hears and speaks. */
export interface ChosenVoice {
  settings: VoiceSettings;
  /** English name of the language spoken. */
  language: string;
  engines: EngineCodes;
  hearing: Hearing;
  /** The model hears by itself; null: a recogniser does. */
  realtime: { voice: string | null; language: string; model: string | null } | null;
}

/** How the far end can tell its words where this server understands none; a script always does. */
export type GivenWords = Extract<Hearing, "browser" | "typed" | "script">;

/**
 * Throws Fault 422 when nothing can speak or understand the assistant's language. `isRealtime`: as
 * the call is already; unless told, as the assistant's mode says and this server can. `language`:
 * `iso_2` of the one spoken now; unless told, the assistant's. `words`: what the far end offers;
 * null: sound alone.
 */
export type VoiceOf = (
  assistant: Assistant,
  call: {
    isOutbound: boolean; isRealtime?: boolean; language?: string; words: GivenWords | null;
  },
) => ChosenVoice;
