// What an assistant can be given: languages, models, voices, speech providers, phone numbers. All
// bare arrays.
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import { Nullable } from "../core/schema.ts";
import { json } from "../http/exchange.ts";
import { keyRoute, type Route } from "../http/route.ts";
import { ASSIGNABLE_TYPE_LABELS } from "../phone-numbers/phone-numbers.ts";
import type { AssignableNumber, Assistants } from "./assistants.ts";
import type { Catalogs, SpeechProvider, Voice } from "./catalogs.ts";
import type { ModelType } from "./rules.ts";
import { ASSISTANT_TYPES, Id, MODES, oneOf } from "./settings.ts";
import { InvalidSchema } from "./wire.ts";

export interface LookupRouteOptions {
  catalogs: Catalogs;
  assistants: Assistants;
  models(type: ModelType): { id: number; name: string; code?: string }[];
}

const LanguageItem = Type.Object({
  id: Type.Integer(), name: Type.String(), iso_2: Type.String(),
});
const ModelItem = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  code: Type.Optional(Type.String({ description: "Of multimodal and dualplex models" })),
});
const ProviderItem = Type.Object({
  id: Type.Integer(), name: Type.String(), code: Type.String(),
});
const VoiceItem = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  language_id: Nullable(Type.Integer()),
  gender: Type.String(),
  preview_url: Type.String({ description: "Empty where there is none" }),
  accent: Nullable(Type.String()),
  age: Nullable(Type.String()),
  synthesizer_provider_id: Nullable(Type.Integer()),
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

export function lookupRoutes({ catalogs, assistants, models }: LookupRouteOptions): Route[] {
  return [
    keyRoute({
      ...lookup("languages", "Languages", Type.Object({}), LanguageItem),
      handle: () =>
        json(200, catalogs.languages().map(({ id, name, iso_2 }) => ({ id, name, iso_2 }))),
    }),
    keyRoute({
      ...lookup("models", "Models of one type", ModelQuery, ModelItem),
      handle: ({ query: { type = "llm" } }) => json(200, models(type).map((model) => {
        const { id, name, code = "" } = model;
        return type === "llm" ? { id, name } : { id, name, code };
      })),
    }),
    keyRoute({
      ...lookup("voices", "Voices", VoiceQuery, VoiceItem),
      handle: ({ query }) => json(200, catalogs.voices(query).map(voiceWire)),
    }),
    keyRoute({
      ...lookup(
        "synthesizer-providers", "Who can speak (pipeline, dualplex)", LanguageQuery, ProviderItem),
      handle: ({ query }) =>
        json(200, catalogs.synthesizers(query.language_id).map(providerWire)),
    }),
    keyRoute({
      ...lookup("transcriber-providers", "Who can listen (pipeline)", LanguageQuery, ProviderItem),
      handle: ({ query }) =>
        json(200, catalogs.transcribers(query.language_id).map(providerWire)),
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

function voiceWire(voice: Voice) {
  const { id, name, language_id, gender, preview_url = "", accent, age } = voice;
  const { synthesizer_provider_id } = voice;
  return { id, name, language_id, gender, preview_url, accent, age, synthesizer_provider_id };
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
