// What of an assistant's settings does not act on this server, and why: told with every create,
// update and read of the assistant, and kept with its calls. Such settings are accepted, because
// clients of this API send them, but never without a word.
import { Type, type Static } from "@sinclair/typebox";
import type { Assistant } from "./assistants.ts";
import type { BuiltInTool } from "./built-in-tools.ts";
import type { Catalogs } from "./catalogs.ts";
import type { Mode } from "./settings.ts";

export const WarningsSchema = Type.Array(
  Type.Object({
    field: Type.String({
      description: "Setting concerned, spelt as in a refusal.", examples: ["voice_id"],
    }),
    message: Type.String({
      description: "What happens instead, and what is missing.",
      examples: ["Calls are spoken by another engine. The setting PARLEY_ELEVENLABS_KEY is not set on this server."],
    }),
  }),
  {
    description: "Settings that are stored but do not act on this server; empty when all act.",
    examples: [[]],
  },
);
export type Warning = Static<typeof WarningsSchema>[number];

/** What this server has for assistants. A reason is one sentence; null: nothing is missing. */
export interface Capabilities {
  whyModelMissing(id: number): string | null;
  /** Why the modes multimodal and dualplex run as a pipeline. */
  whyRealtimeMissing(): string | null;
  /** `language`: `iso_2`; null: any. */
  whySynthesizerMissing(code: string, language: string | null): string | null;
  whyTranscriberMissing(code: string, language: string | null): string | null;
  /** Code of the engine that speaks or understands the language; null: there is none. */
  synthesizerFor(language: string, code: string | null): string | null;
  transcriberFor(language: string, code: string | null): string | null;
}

interface Case {
  assistant: Assistant;
  catalogs: Catalogs;
  can: Capabilities;
  /** Of the assistant's own language. */
  iso: string;
}

type Rule = (judged: Case, warn: (field: string, message: string) => void) => void;

const GONE = "It is not in the catalog of this server any more.";

const models: Rule = ({ assistant: { mode, settings }, can }, warn) => {
  const check = (field: string, id: number | null): void => {
    const reason = id === null ? null : can.whyModelMissing(id);
    if (reason !== null) warn(field, `Another model answers in place of this one. ${reason}`);
  };
  if (mode === "pipeline") return check("llm_model_id", settings.llm_model_id);
  check("chat_llm_fallback_id", settings.chat_llm_fallback_id);
  const reason = can.whyRealtimeMissing();
  if (reason === null) return;
  warn("mode", "Calls run as a pipeline of recogniser, language model and voice. " + reason);
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
    return warn("language_id", "Calls are refused: nothing on this server speaks the language.");
  }
  if (chosenId !== null && !chosen) warn("synthesizer_provider_id", GONE);
  if (provider) {
    const reason = can.whySynthesizerMissing(provider.code, iso);
    const field = chosen ? "synthesizer_provider_id" : "voice_id";
    if (reason !== null) warn(field, `Calls are spoken by another engine. ${reason}`);
  }
};

const ears: Rule = ({ assistant: { mode, settings }, catalogs, can, iso }, warn) => {
  if (hearsItself(mode, can)) return;
  const { transcriber_provider_id: chosenId } = settings;
  const chosen = chosenId === null ? null : catalogs.findTranscriber(chosenId);
  if (chosenId !== null && !chosen) warn("transcriber_provider_id", GONE);
  const reason = chosen && can.whyTranscriberMissing(chosen.code, iso);
  if (reason) warn("transcriber_provider_id", `Calls are heard by another engine. ${reason}`);
};

/** Members of built-in tools that nothing on this server acts on yet. */
const SILENT_TRANSFER = "The caller is connected straight away, without a word to the colleague first.";
const INERT: Partial<Record<BuiltInTool["type"], Record<string, string>>> = {
  call_transfer: { warm_transfer: SILENT_TRANSFER, warm_transfer_message: SILENT_TRANSFER },
};

const builtInTools: Rule = ({ assistant }, warn) => {
  assistant.settings.tools.forEach((tool, index) => {
    const members = Object.entries(tool) as [string, unknown][];
    for (const [member, value] of members) {
      const message = INERT[tool.type]?.[member];
      if (message !== undefined && value !== null && value !== false) {
        warn(`tools.${index}.${member}`, message);
      }
    }
    if (tool.type === "warm_call_transfer") warn(`tools.${index}`, SILENT_TRANSFER);
  });
};

const RULES: readonly Rule[] = [models, voice, ears, builtInTools];

export function findWarnings(
  assistant: Assistant, catalogs: Catalogs, can: Capabilities,
): Warning[] {
  const language = catalogs.findLanguage(assistant.settings.language_id);
  if (!language) return [{ field: "language_id", message: GONE }];
  const warnings: Warning[] = [];
  const judged = { assistant, catalogs, can, iso: language.iso_2 };
  for (const rule of RULES) rule(judged, (field, message) => warnings.push({ field, message }));
  return warnings;
}
