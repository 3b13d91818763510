// What an assistant can be given: languages, models, voices, speech providers, phone numbers. All
// bare arrays.
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import { Fault } from "../core/faults.ts";
import { Nullable } from "../core/schema.ts";
import { json } from "../http/exchange.ts";
import { keyRoute, publicRoute, type Route } from "../http/route.ts";
import { ASSIGNABLE_TYPE_LABELS } from "../phone-numbers/phone-numbers.ts";
import type { AssignableNumber, Assistants } from "./assistants.ts";
import type { Catalogs, SpeechProvider, Voice } from "./catalogs.ts";
import type { ModelType } from "./rules.ts";
import { ASSISTANT_TYPES, Id, MODES, oneOf } from "./settings.ts";
import type { VoicePreviews } from "./voice-previews.ts";
import { InvalidSchema } from "./wire.ts";

export interface LookupRouteOptions {
  catalogs: Catalogs;
  assistants: Assistants;
  capabilities: {
    /** Why the server cannot use it, in one sentence; null: it can. */
    whyVoiceMissing(voice: Voice): string | null;
    whyProviderMissing(
      kind: "synthesizer" | "transcriber", provider: SpeechProvider): string | null;
    previews: VoicePreviews;
  };
  models(type: ModelType): { id: number; name: string; code?: string; missing: string | null }[];
}

/** Whether what a list offers can be used on this server. */
const AVAILABILITY = {
  available: Type.Boolean({
    description: "Whether this server can use it. What is not available is replaced when it is chosen.",
    examples: [true],
  }),
  missing: Nullable(Type.String(), {
    description: "What is missing, in one sentence; null when it is available.",
    examples: ["The setting PARLEY_DEEPGRAM_KEY is not set on this server."],
  }),
};
const availability = (missing: string | null) => ({ available: missing === null, missing });

const LanguageItem = Type.Object({
  id: Type.Integer(), name: Type.String(), iso_2: Type.String(),
});
const ModelItem = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  code: Type.Optional(Type.String({ description: "Of multimodal and dualplex models" })),
  ...AVAILABILITY,
});
const ProviderItem = Type.Object({
  id: Type.Integer(), name: Type.String(), code: Type.String(), ...AVAILABILITY,
});
const VoiceItem = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  language_id: Nullable(Type.Integer()),
  gender: Type.String(),
  preview_url: Nullable(Type.String(), {
    description: "WAV file in which the voice says a sentence; null when this server cannot speak with it.",
    examples: ["https://parley.example.org/api/voices/1/preview"],
  }),
  accent: Nullable(Type.String()),
  age: Nullable(Type.String()),
  synthesizer_provider_id: Nullable(Type.Integer()),
  ...AVAILABILITY,
});
const PhoneNumberItem = Type.Object({
  id: Type.Integer(),
  phone_number: Type.String(),
  country_code: Type.String(),
  type_label: Type.String(),
  is_available: Type.Boolean({
    description: "Whether a new inbound assistant could be given the number",
  }),
});

const VoiceQuery = Type.Object({
  mode: Type.Optional(oneOf(MODES)),
  language_id: Type.Optional(Id()),
  synthesizer_provider_id: Type.Optional(Id()),
  gender: Type.Optional(Type.String({ maxLength: 50 })),
  age: Type.Optional(Type.String({ maxLength: 50 })),
  accent: Type.Optional(Type.String({ maxLength: 50 })),
  search: Type.Optional(Type.String({ maxLength: 255 })),
});
const LanguageQuery = Type.Object({ language_id: Type.Optional(Id()) });
const ModelQuery = Type.Object({
  type: Type.Optional(oneOf(["llm", "multimodal", "dualplex"], { default: "llm" })),
});
const NumberQuery = Type.Object({ type: Type.Optional(oneOf(ASSISTANT_TYPES)) });

function lookup<Query extends TObject>(name: string, summary: string, query: Query, item: TSchema) {
  return {
    method: "GET" as const,
    path: `/user/assistants/${name}`,
    tag: "Assistant lookups" as const,
    summary,
    query,
    errorShape: "message" as const,
    responses: {
      200: { description: "All of them", schema: Type.Array(item) },
      422: { description: "A filter is at fault", schema: InvalidSchema },
    },
  };
}

export function lookupRoutes(options: LookupRouteOptions): Route[] {
  const { catalogs, assistants, models, capabilities } = options;
  return [
    keyRoute({
      ...lookup("languages", "Languages", Type.Object({}), LanguageItem),
      handle: () =>
        json(200, catalogs.languages().map(({ id, name, iso_2 }) => ({ id, name, iso_2 }))),
    }),
    keyRoute({
      ...lookup("models", "Models of one type", ModelQuery, ModelItem),
      handle: ({ query: { type = "llm" } }) => json(200, models(type).map((model) => {
        const { id, name, code = "", missing } = model;
        const named = type === "llm" ? { id, name } : { id, name, code };
        return { ...named, ...availability(missing) };
      })),
    }),
    keyRoute({
      ...lookup("voices", "Voices", VoiceQuery, VoiceItem),
      handle: ({ query, baseUrl }) => json(200, catalogs.voices(query).map((voice) => ({
        ...voiceWire(voice),
        preview_url: capabilities.previews.has(voice) ? previewUrl(baseUrl, voice.id) : null,
        ...availability(capabilities.whyVoiceMissing(voice)),
      }))),
    }),
    previewRoute(capabilities.previews),
    keyRoute({
      ...lookup(
        "synthesizer-providers", "Who can speak (pipeline, dualplex)", LanguageQuery, ProviderItem),
      handle: ({ query }) =>
        json(200, catalogs.synthesizers(query.language_id).map((provider) => ({
          ...providerWire(provider),
          ...availability(capabilities.whyProviderMissing("synthesizer", provider)),
        }))),
    }),
    keyRoute({
      ...lookup("transcriber-providers", "Who can listen (pipeline)", LanguageQuery, ProviderItem),
      handle: ({ query }) =>
        json(200, catalogs.transcribers(query.language_id).map((provider) => ({
          ...providerWire(provider),
          ...availability(capabilities.whyProviderMissing("transcriber", provider)),
        }))),
    }),
    keyRoute({
      ...lookup(
        "phone-numbers",
        "Phone numbers; with type=inbound those a new inbound assistant could be given",
        NumberQuery,
        PhoneNumberItem,
      ),
      handle: ({ caller, query: { type = null } }) =>
        json(200, assistants.assignableNumbers(caller.accountId, type).map(phoneNumberWire)),
    }),
  ];
}

const previewUrl = (baseUrl: string, voiceId: number): string =>
  `${baseUrl}/voices/${voiceId}/preview`;

const NO_PREVIEW = "This voice cannot be heard on this server.";
const WAV = "audio/wav";
/** The sentence and the voice are the same for as long as the server runs. */
const PREVIEW_HEADERS = { "Cache-Control": "public, max-age=86400" };

function previewRoute(previews: VoicePreviews): Route {
  return publicRoute({
    method: "GET",
    path: "/voices/{id}/preview",
    tag: "Assistant lookups",
    summary: "A sentence in a voice, for players, which send no key",
    errorShape: "message",
    notFound: NO_PREVIEW,
    responses: {
      200: { description: "WAV, one channel", schema: Type.String(), contentType: WAV },
      404: { description: "No such voice, or nothing here speaks with it" },
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
