// The shipped catalogs under data/: languages, voices, speech providers, plans. Read once at the
// start, validated as a whole (an invalid row aborts the start and is named), never written.
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readPlans, type Plan, type Plans } from "#core/price-lists.ts";
import { programFile } from "#core/program.ts";
import { Nullable, OneOf } from "#core/schema.ts";
import { FillerConfig, Id, MODES, type AssistantSettings, type Mode } from "./settings.ts";

const Text = Type.String({ minLength: 1 });

/** The sentences that a call says by itself, without the model. */
const PhrasesRow = Type.Object({
  still_there: Text, again: Text, time_is_up: Text, leaving: Text, sorry: Text,
  not_connected: Text,
  /** Asks a colleague whether to take the call. */
  take_call: Text,
});
const LanguageRow = Type.Object({
  id: Id(),
  name: Text,
  iso_2: Type.String({ pattern: "^[a-z]{2}$" }),
  /** Fillers an assistant says while the model works, unless it has its own. */
  fillers: Type.Required(FillerConfig),
  phrases: PhrasesRow,
});
const VoiceRow = Type.Object({
  id: Id(),
  name: Text,
  /** Null: speaks any language. */
  language_id: Nullable(Id()),
  gender: OneOf(["male", "female"]),
  accent: Nullable(Text),
  age: Nullable(Text),
  /** Null: not tied to a provider; the engine that speaks picks its nearest voice. */
  synthesizer_provider_id: Nullable(Id()),
  modes: Type.Array(OneOf(MODES), { minItems: 1, uniqueItems: true }),
  /** The voice's name at each vendor, by the vendor's code. */
  codes: Type.Record(Type.String(), Type.String()),
});
const ProviderRow = Type.Object({
  id: Id(),
  name: Text,
  code: Text,
  /** `iso_2` codes; null: every language. */
  languages: Nullable(Type.Array(Text)),
});

const Languages = Type.Array(LanguageRow, { minItems: 1 });
const Voices = Type.Array(VoiceRow, { minItems: 1 });
const Providers = Type.Object({
  synthesizers: Type.Array(ProviderRow),
  transcribers: Type.Array(ProviderRow),
});

export type Language = Static<typeof LanguageRow>;
export type Voice = Static<typeof VoiceRow>;
export type SpeechProvider = Static<typeof ProviderRow>;

/** Compatible servers use OpenAI's voice names, which the catalog has only once. */
const VOICES_OF: Record<string, string> = { "openai-compatible": "openai" };

/** The engine's name of the voice; null: it does not have the voice. */
export const voiceCodeOf = ({ codes }: Voice, engine: string | null): string | null =>
  (engine === null ? null : codes[VOICES_OF[engine] ?? engine] ?? null);

/** Absent members do not filter. Texts are compared case-insensitively. */
interface VoiceFilter {
  mode?: Mode;
  /** Also finds voices that speak any language. */
  language_id?: number;
  synthesizer_provider_id?: number;
  gender?: string;
  age?: string;
  accent?: string;
  /** Part of the name, accent or age. */
  search?: string;
}

type LanguageSettings = Pick<AssistantSettings, "language_id" | "secondary_language_ids">;

export interface Catalogs {
  languages(): readonly Language[];
  voices(filter: VoiceFilter): Voice[];
  /** Providers that can speak the language; all without one. */
  synthesizers(languageId?: number): SpeechProvider[];
  /** Providers that understand the language; all without one. */
  transcribers(languageId?: number): SpeechProvider[];
  findLanguage(id: number): Language | null;
  /** English names of an assistant's main language and of the others it may switch to. */
  languagesOf(assistant: { settings: LanguageSettings }): { main: string; others: string[] };
  findVoice(id: number): Voice | null;
  findSynthesizer(id: number): SpeechProvider | null;
  findTranscriber(id: number): SpeechProvider | null;
  /** Filler phrases of the language; empty lists for one that the catalog lacks. */
  fillers(languageId: number): FillerConfig;
  /** The plan's caps; an unknown plan has those of the default one. */
  plan(name: string): Plan;
}

const SHIPPED = programFile("data");

function readCatalog<T extends TSchema>(folder: string, file: string, schema: T): Static<T> {
  const path = join(folder, file);
  const value: unknown = JSON.parse(readFileSync(path, "utf8"));
  const compiled = TypeCompiler.Compile(schema);
  const error = compiled.Errors(value).First();
  if (error) throw new Error(`${path}: ${error.path || "/"}: ${error.message}`);
  return value as Static<T>;
}

function byId<T extends { id: number }>(rows: readonly T[], what: string): Map<number, T> {
  const map = new Map(rows.map((row) => [row.id, row]));
  if (map.size !== rows.length) throw new Error(`data: two ${what} have the same id`);
  return map;
}

function assertKnown(
  voices: readonly Voice[],
  languages: Map<number, Language>,
  synthesizers: Map<number, SpeechProvider>,
): void {
  for (const voice of voices) {
    const { language_id: language, synthesizer_provider_id: provider } = voice;
    if ((language !== null && !languages.has(language))
      || (provider !== null && !synthesizers.has(provider))) {
      throw new Error(`data: voice ${voice.id} names an unknown language or provider`);
    }
  }
}

const sameText = (a: string | null, b: string): boolean => a?.toLowerCase() === b.toLowerCase();

function matches(voice: Voice, filter: VoiceFilter): boolean {
  const { mode, language_id: language, synthesizer_provider_id: provider } = filter;
  const { gender, age, accent, search } = filter;
  const searched = `${voice.name}\n${voice.accent ?? ""}\n${voice.age ?? ""}`.toLowerCase();
  return (mode === undefined || voice.modes.includes(mode))
    && (language === undefined || voice.language_id === null || voice.language_id === language)
    && (provider === undefined || voice.synthesizer_provider_id === provider)
    && (gender === undefined || sameText(voice.gender, gender))
    && (age === undefined || sameText(voice.age, age))
    && (accent === undefined || sameText(voice.accent, accent))
    && (search === undefined || searched.includes(search.toLowerCase()));
}

export function loadCatalogs(plans: Plans = readPlans(), folder = SHIPPED): Catalogs {
  const languages = readCatalog(folder, "languages.json", Languages);
  const voices = readCatalog(folder, "voices.json", Voices);
  const providers = readCatalog(folder, "providers.json", Providers);
  const languageById = byId(languages, "languages");
  const voiceById = byId(voices, "voices");
  const synthesizerById = byId(providers.synthesizers, "synthesizers");
  const transcriberById = byId(providers.transcribers, "transcribers");
  assertKnown(voices, languageById, synthesizerById);

  const supporting = (rows: SpeechProvider[], languageId: number | undefined): SpeechProvider[] => {
    if (languageId === undefined) return rows;
    const code = languageById.get(languageId)?.iso_2;
    return rows.filter(({ languages: known }) =>
      code !== undefined && (known === null || known.includes(code)));
  };
  return {
    languages: () => languages,
    voices: (filter) =>
      filter.language_id === undefined || languageById.has(filter.language_id)
        ? voices.filter((voice) => matches(voice, filter))
        : [],
    synthesizers: (languageId) => supporting(providers.synthesizers, languageId),
    transcribers: (languageId) => supporting(providers.transcribers, languageId),
    findLanguage: (id) => languageById.get(id) ?? null,
    languagesOf: ({ settings: { language_id: main, secondary_language_ids: others } }) => ({
      main: languageById.get(main)?.name ?? "English",
      others: others.filter((id) => id !== main)
        .flatMap((id) => languageById.get(id)?.name ?? []),
    }),
    findVoice: (id) => voiceById.get(id) ?? null,
    findSynthesizer: (id) => synthesizerById.get(id) ?? null,
    findTranscriber: (id) => transcriberById.get(id) ?? null,
    fillers: (languageId) => ({
      neutral: [], negative: [], positive: [], question: [],
      ...languageById.get(languageId)?.fillers,
    }),
    plan: plans.of,
  };
}
