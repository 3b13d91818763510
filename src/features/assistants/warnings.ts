// The settings of an assistant that have no effect on this server, and why: every create, update
// and read of the assistant lists them, and its calls record them. Such settings are accepted,
// because clients of this API send them, but never silently.
import { Type, type Static } from "@sinclair/typebox";
import type { Assistant } from "./assistants.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Catalogs } from "./catalogs.ts";
import { defaults, type Mode } from "./settings.ts";

export const WarningsSchema = Type.Array(
  Type.Object({
    field: Type.String({
      description: "The setting, named as in validation errors.", examples: ["voice_id"],
    }),
    message: Type.String({
      description: "What happens instead, and what is missing to make it work.",
      examples: ["Another engine speaks in calls. The setting PARLEY_ELEVENLABS_KEY is not set on this server."],
    }),
  }),
  {
    description: "Settings that are stored but have no effect on this server; empty if all take "
      + "effect.",
    examples: [[]],
  },
);
export type Warning = Static<typeof WarningsSchema>[number];

interface Case {
  assistant: Assistant;
  catalogs: Catalogs;
  can: Capabilities;
  /** The ISO code of the assistant's own language. */
  iso: string;
}

type Rule = (
  judged: Case, warn: (field: string, message: string) => void,
) => void | Promise<void>;

const GONE = "It is no longer in this server's catalog.";

const models: Rule = ({ assistant: { mode, settings }, can }, warn) => {
  const check = (field: string, id: number | null): void => {
    const reason = id === null ? null : can.whyModelMissing(id);
    if (reason !== null) warn(field, `Another model answers instead of this one. ${reason}`);
  };
  if (mode === "pipeline") return check("llm_model_id", settings.llm_model_id);
  check("chat_llm_fallback_id", settings.chat_llm_fallback_id);
  const reason = can.whyRealtimeMissing();
  if (reason === null) return;
  warn("mode", "Calls run as a pipeline of recogniser, language model and voice. " + reason);
};

const ownTools: Rule = ({ assistant: { mode, settings }, can }, warn) => {
  const { llm_model_id: id, tool_ids: { length } } = settings;
  if (length === 0 || mode !== "pipeline" || id === null || !can.isOffline(id)) return;
  const why = can.whyModelMissing(id) ?? "Choose another model.";
  warn("tool_ids", `No tool is called, because the offline model answers and does not call tools. ${why}`);
};

const hearsItself = (mode: Mode, can: Capabilities): boolean =>
  mode !== "pipeline" && can.whyRealtimeMissing() === null;

const voice: Rule = ({ assistant: { mode, settings }, catalogs, can, iso }, warn) => {
  if (hearsItself(mode, can) && mode === "multimodal") return;
  const { synthesizer_provider_id: chosenId, voice_id: voiceId } = settings;
  const chosen = chosenId === null ? null : catalogs.findSynthesizer(chosenId);
  const found = catalogs.findVoice(voiceId);
  if (!found) return warn("voice_id", GONE);
  const own = found.synthesizer_provider_id;
  const provider = chosen ?? (own === null ? null : catalogs.findSynthesizer(own));
  const code = can.synthesizerFor(iso, provider?.code ?? null);
  if (code === null) {
    return warn("language_id", "Calls are refused: no voice on this server speaks the language.");
  }
  if (chosenId !== null && !chosen) warn("synthesizer_provider_id", GONE);
  if (provider) {
    const reason = can.whySynthesizerMissing(provider.code, iso);
    const field = chosen ? "synthesizer_provider_id" : "voice_id";
    if (reason !== null) warn(field, `Another engine speaks in calls. ${reason}`);
  }
};

const ears: Rule = ({ assistant: { mode, settings }, catalogs, can, iso }, warn) => {
  if (hearsItself(mode, can)) return;
  const { transcriber_provider_id: chosenId } = settings;
  const chosen = chosenId === null ? null : catalogs.findTranscriber(chosenId);
  if (chosenId !== null && !chosen) warn("transcriber_provider_id", GONE);
  const reason = chosen && can.whyTranscriberMissing(chosen.code, iso);
  if (reason) warn("transcriber_provider_id", `Another engine recognises speech in calls. ${reason}`);
};

const EVEN_VOICE = "The voice engine of this server does not support emotion: ElevenLabs and "
  + "OpenAI's newer models do.";
const FIXED_VOICE = "The voice engine of this server does not support it: only ElevenLabs does.";
const NO_HINTS = "No recogniser of this server takes hints: those of Deepgram, AssemblyAI, Soniox, "
  + "Gladia, Cartesia, Azure and OpenAI do.";
const ONE_LANGUAGE = "Calls are understood in the first language only: this server has no recogniser "
  + "for several languages, such as Deepgram's nova-3 and multilingual Flux, AssemblyAI's "
  + "multilingual models, Soniox, Gladia or OpenAI.";

/** Warns of settings that this server's engines ignore. Default values give no warning. */
const unused: Rule = ({ assistant: { mode, settings }, catalogs, can, iso }, warn) => {
  const isHeard = hearsItself(mode, can);
  const isSpoken = isHeard && mode === "multimodal";
  const codeOf = (provider: { code: string } | null): string | null => provider?.code ?? null;
  const { synthesizer_provider_id: chosenId, transcriber_provider_id: earsId } = settings;
  const usualId = catalogs.findVoice(settings.voice_id)?.synthesizer_provider_id ?? null;
  const voiceId = chosenId ?? usualId;
  const spokenBy = isSpoken ? null : can.synthesizerFor(
    iso, voiceId === null ? null : codeOf(catalogs.findSynthesizer(voiceId)));
  const heardBy = isHeard ? null : can.transcriberFor(
    iso, earsId === null ? null : codeOf(catalogs.findTranscriber(earsId)));
  const speaks = spokenBy === null ? null : can.synthesizerAbilities(spokenBy);
  const hears = heardBy === null ? null : can.transcriberAbilities(heardBy);
  // Emotion is on by default, so it counts as requested only where the engine was chosen too.
  if (settings.tts_emotion_enabled && chosenId !== null && speaks?.emotion === false) {
    warn("tts_emotion_enabled", EVEN_VOICE);
  }
  const usual = defaults();
  for (const field of ["voice_stability", "voice_similarity"] as const) {
    if (!speaks?.stability && settings[field] !== usual[field]) warn(field, FIXED_VOICE);
  }
  if (settings.recogniser_hints.length > 0 && !hears?.hints) warn("recogniser_hints", NO_HINTS);
  const others = settings.secondary_language_ids.filter((id) => id !== settings.language_id);
  if (others.length > 0 && !isHeard && !hears?.severalLanguages) {
    warn("secondary_language_ids", ONE_LANGUAGE);
  }
};

const TO_NOBODY = "The caller is not handed over: that assistant no longer exists.";

const builtInTools: Rule = async ({ assistant, can }, warn) => {
  for (const [index, tool] of assistant.settings.tools.entries()) {
    if (tool.type === "assistant_transfer"
      && !await can.hasAssistant(assistant.accountId, tool.assistant_id)) {
      warn(`tools.${index}.assistant_id`, TO_NOBODY);
    }
  }
};

const RULES: readonly Rule[] = [models, ownTools, voice, ears, unused, builtInTools];

export async function findWarnings(
  assistant: Assistant, catalogs: Catalogs, can: Capabilities,
): Promise<Warning[]> {
  const language = catalogs.findLanguage(assistant.settings.language_id);
  if (!language) return [{ field: "language_id", message: GONE }];
  const warnings: Warning[] = [];
  const judged = { assistant, catalogs, can, iso: language.iso_2 };
  for (const rule of RULES) {
    await rule(judged, (field, message) => void warnings.push({ field, message }));
  }
  return warnings;
}
