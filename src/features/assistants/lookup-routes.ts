// What an assistant can be given: languages, models, voices, speech providers, phone numbers. All
// are answered as bare arrays.
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { IdOf, listOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, publicRoute, type Route } from "#http/route.ts";
import { ASSIGNABLE_TYPE_LABELS } from "#features/phone-numbers/phone-numbers.ts";
import type { AssignableNumber, Assistants } from "./assistants.ts";
import type { VoiceAvailability } from "./capabilities.ts";
import type { Catalogs, SpeechProvider, Voice } from "./catalogs.ts";
import type { ModelType } from "./rules.ts";
import { ASSISTANT_TYPES, Id, MODES } from "./settings.ts";
import type { VoicePreviews } from "./voice-previews.ts";

interface LookupRouteOptions {
  catalogs: Catalogs;
  assistants: Assistants;
  capabilities: Pick<
    VoiceAvailability, "whyVoiceMissing" | "whyProviderMissing" | "whyLanguageMissing"
  > & {
    previews: VoicePreviews;
  };
  models(type: ModelType): { id: number; name: string; code?: string; missing: string | null }[];
}

/** Whether a listed item can be used on this server. */
const AVAILABILITY = {
  available: Type.Boolean({
    description: "Whether this server can use it. If it is chosen but not available, another is "
      + "used instead.",
    examples: [true],
  }),
  missing: Nullable(Type.String(), {
    description: "What is missing, in one sentence; null if it is available.",
    examples: ["The setting PARLEY_DEEPGRAM_KEY is not set on this server."],
  }),
};
const availability = (missing: string | null) => ({ available: missing === null, missing });

const LanguageItem = Type.Object({
  id: Type.Integer(about("Value for an assistant's `language_id`.", 1)),
  name: Type.String(about("The language in English.", "German")),
  iso_2: Type.String(about("Its two-letter ISO 639-1 code.", "de")),
  available: Type.Boolean(about(
    "Whether this server's own engines speak and understand it on calls. Chats work in any "
    + "language; realtime models and callers' browsers may support more.",
    true)),
  missing: Nullable(Type.String(about(
    "What calls in this language lack, in one sentence; null if it is available.",
    "No recogniser on this server understands it."))),
});
const ModelItem = Type.Object({
  id: Type.Integer(about("Value for an assistant's `llm_model_id` or `multimodal_model_id`.", 1)),
  name: Type.String(about("The model's name.", "gpt-4.1-mini")),
  code: Type.Optional(Type.String(about(
    "The vendor's model name; only multimodal and dualplex models have one.", "gpt-realtime"))),
  ...AVAILABILITY,
});
const ProviderItem = Type.Object({
  id: Type.Integer(about("Value for the assistant's provider field.", 1)),
  name: Type.String(about("Who it is.", "ElevenLabs")),
  code: Type.String(about("The provider's name for programs.", "elevenlabs")),
  ...AVAILABILITY,
});
const VoiceItem = Type.Object({
  id: Type.Integer(about("Value for an assistant's `voice_id`.", 1)),
  name: Type.String(about("The voice's name.", "Amelia")),
  language_id: Nullable(Type.Integer(about("Its language; null if it speaks several.", 1))),
  gender: Type.String(about("Its gender.", "female")),
  preview_url: Nullable(Type.String(about(
    "URL of a WAV sample; null if this server cannot use the voice.",
    "https://talk.example.com/api/voices/1/preview"))),
  accent: Nullable(Type.String(about("Its accent; null if not known.", "british"))),
  age: Nullable(Type.String(about("How old it sounds; null if not known.", "young"))),
  synthesizer_provider_id: Nullable(Type.Integer(about(
    "Its provider; null if the assistant's speech provider supplies it.", 1))),
  ...AVAILABILITY,
});
const PhoneNumberItem = Type.Object({
  id: Type.Integer(about("Value for an assistant's `phone_number_id`.", 1)),
  phone_number: Type.String(about("The number in E.164, or an extension.", "+4930123456")),
  country_code: Type.String(about("Its two-letter country code.", "DE")),
  type_label: Type.String(about("The kind of number.", "Dedicated Number")),
  is_available: Type.Boolean(about("Whether the number is free for a new inbound assistant.")),
});

const VoiceQuery = Type.Object({
  mode: Type.Optional(OneOf(MODES, about("Only voices for assistants of this mode."))),
  language_id: Type.Optional(Id(about("Only voices that speak this language.", 1))),
  synthesizer_provider_id: Type.Optional(Id(about("Only voices of this provider.", 1))),
  gender: Type.Optional(Type.String({ maxLength: 50, ...about("Only voices of this gender.",
    "female") })),
  age: Type.Optional(Type.String({ maxLength: 50, ...about("Only voices of this age.",
    "young") })),
  accent: Type.Optional(Type.String({ maxLength: 50, ...about("Only voices of this accent.",
    "british") })),
  search: Type.Optional(Type.String({
    maxLength: 255, ...about("Only voices with this text in their name.", "ame"),
  })),
});
const LanguageQuery = Type.Object({
  language_id: Type.Optional(Id(about("Only providers that support this language.", 1))),
});
const ModelQuery = Type.Object({
  type: Type.Optional(OneOf(["llm", "multimodal", "dualplex"], {
    default: "llm", ...about("llm for language models, or the mode whose speech models to list."),
  })),
});
const NumberQuery = Type.Object({
  type: Type.Optional(OneOf(ASSISTANT_TYPES, about("The type of assistant the number is for."))),
});

function lookup<Query extends TObject>(name: string, summary: string, query: Query, item: TSchema) {
  return {
    method: "GET" as const,
    path: `/user/assistants/${name}`,
    tag: "Assistant lookups" as const,
    summary,
    query,
    errorShape: "message" as const,
    responses: {
      200: { description: "The list", schema: listOf(item, "All of them.") },
    },
  };
}

export function lookupRoutes(options: LookupRouteOptions): Route[] {
  const { catalogs, assistants, models, capabilities } = options;
  return [
    keyRoute({
      ...lookup("languages", "List languages", Type.Object({}), LanguageItem),
      handle: async () =>
        json(200, catalogs.languages().map(({ id, name, iso_2 }) =>
          ({ id, name, iso_2, ...availability(capabilities.whyLanguageMissing(iso_2)) }))),
    }),
    keyRoute({
      ...lookup("models", "List models of one type", ModelQuery, ModelItem),
      handle: async ({ query: { type = "llm" } }) => json(200, models(type).map((model) => {
        const { id, name, code = "", missing } = model;
        const named = type === "llm" ? { id, name } : { id, name, code };
        return { ...named, ...availability(missing) };
      })),
    }),
    keyRoute({
      ...lookup("voices", "List voices", VoiceQuery, VoiceItem),
      handle: async ({ query, baseUrl }) => json(200, catalogs.voices(query).map((voice) => ({
        ...voiceWire(voice),
        preview_url: capabilities.previews.has(voice) ? previewUrl(baseUrl, voice.id) : null,
        ...availability(capabilities.whyVoiceMissing(voice)),
      }))),
    }),
    previewRoute(capabilities.previews),
    keyRoute({
      ...lookup(
        "synthesizer-providers", "List speech synthesizers (pipeline, dualplex)",
          LanguageQuery, ProviderItem),
      handle: async ({ query }) =>
        json(200, catalogs.synthesizers(query.language_id).map((provider) => ({
          ...providerWire(provider),
          ...availability(capabilities.whyProviderMissing("synthesizer", provider)),
        }))),
    }),
    keyRoute({
      ...lookup("transcriber-providers", "List speech recognisers (pipeline)",
        LanguageQuery, ProviderItem),
      handle: async ({ query }) =>
        json(200, catalogs.transcribers(query.language_id).map((provider) => ({
          ...providerWire(provider),
          ...availability(capabilities.whyProviderMissing("transcriber", provider)),
        }))),
    }),
    keyRoute({
      ...lookup(
        "phone-numbers",
        "List phone numbers; with type=inbound, those free for a new inbound assistant",
        NumberQuery,
        PhoneNumberItem,
      ),
      handle: async ({ caller, query: { type = null } }) => {
        const numbers = await assistants.assignableNumbers(caller.accountId, type);
        return json(200, numbers.map(phoneNumberWire));
      },
    }),
  ];
}

const previewUrl = (baseUrl: string, voiceId: number): string =>
  `${baseUrl}/voices/${voiceId}/preview`;

const NO_PREVIEW = "This voice cannot be heard on this server.";
const WAV = "audio/wav";
/** A voice's preview does not change while the server runs. */
const PREVIEW_HEADERS = { "Cache-Control": "public, max-age=86400" };

const SENTENCE = Type.String(
  named("VoicePreview", "WAV audio: 16-bit PCM, mono.", "RIFF…"));

function previewRoute(previews: VoicePreviews): Route {
  return publicRoute({
    method: "GET",
    path: "/voices/{id}/preview",
    tag: "Assistant lookups",
    summary: "Get a voice sample",
    description: "Returns a spoken sentence. Needs no API key, so that audio players can load it.",
    params: { id: IdOf("voice", "GET /user/assistants/voices") },
    errorShape: "message",
    notFound: NO_PREVIEW,
    responses: {
      200: { description: "WAV, one channel", schema: SENTENCE, contentType: WAV },
      404: { description: "No such voice, or this server cannot use it" },
    },
    handle: async ({ id }) => {
      const file = await previews.get(id);
      if (!file) throw new Fault(404, NO_PREVIEW);
      const content = Buffer.from(file.buffer);
      return { status: 200, headers: PREVIEW_HEADERS, contentType: WAV, content };
    },
  });
}

function voiceWire({ id, name, language_id, gender, accent, age, synthesizer_provider_id }: Voice) {
  return { id, name, language_id, gender, accent, age, synthesizer_provider_id };
}

function providerWire({ id, name, code }: SpeechProvider) {
  return { id, name, code };
}

function phoneNumberWire({ id, phoneNumber, countryCode, type, isAvailable }: AssignableNumber) {
  return {
    id,
    phone_number: phoneNumber,
    country_code: countryCode,
    type_label: ASSIGNABLE_TYPE_LABELS[type],
    is_available: isAvailable,
  };
}
