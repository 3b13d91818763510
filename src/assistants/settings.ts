// Every setting of an assistant: rule, default and message, once. Settings keep the contract's own
// snake_case names inside and in the database (as JSON), so that this one schema validates what
// clients send, types what is stored and prints the OpenAPI document. Rules that need more than one
// field or somebody else's rows are in rules.ts.
import {
  FormatRegistry, Type, type SchemaOptions, type Static, type TNull, type TOptional,
  type TProperties, type TSchema, type TUnion,
} from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { LIMITS } from "../core/limits.ts";
import { readVariables } from "../core/variables.ts";
import { collectingErrors, HttpUrl, prepared, TimeZone, withMessage } from "../core/schema.ts";
import { parseHttpUrl } from "../core/values.ts";
import { BuiltInTool } from "./built-in-tools.ts";

const NAME_CHARS_MAX = 255;
const IDS_MAX = 100;
const ORIGINS_MAX = 50;
const TOOLS_MAX = 30;
const SCHEMA_FIELDS_MAX = 50;
const PHRASES_MAX = 50;
const PHRASE_CHARS_MAX = 200;
const HINT_CHARS_MAX = 100;
const SPEND_CAP_USD_MAX = 1_000_000;

export const ASSISTANT_TYPES = ["inbound", "outbound"] as const;
export const ASSISTANT_STATUSES = ["active", "inactive"] as const;
export const MODES = ["pipeline", "multimodal", "dualplex"] as const;
export type AssistantType = (typeof ASSISTANT_TYPES)[number];
export type AssistantStatus = (typeof ASSISTANT_STATUSES)[number];
export type Mode = (typeof MODES)[number];

export const oneOf = <T extends string>(values: readonly T[], options: SchemaOptions = {}) =>
  Type.Union(values.map((value) => Type.Literal(value)), options);

export const Id = (options: SchemaOptions = {}) =>
  Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, ...options });
const Ids = () => Type.Array(Id(), { maxItems: IDS_MAX, default: [] });
const NonBlank = (charsMax: number) => Type.String({ pattern: "\\S", maxLength: charsMax });
const Ranged = (minimum: number, maximum: number, value?: number) =>
  Type.Number({ minimum, maximum, ...(value === undefined ? {} : { default: value }) });
const Whole = (minimum: number, maximum: number, value?: number) =>
  Type.Integer({ minimum, maximum, ...(value === undefined ? {} : { default: value }) });
const Flag = (value: boolean) => Type.Boolean({ default: value });
const LongText = Type.String({ maxLength: 1000 });

/** As every route reads them; what does not fit becomes something the schema refuses. */
function prepareVariables(value: unknown): unknown {
  if (value === null) return value;
  const read = readVariables(value);
  return read.kind === "read" ? read.variables : read.kind;
}

const Variables = Type.Record(
  Type.String({ pattern: "^[^{}]+$" }),
  Type.String({ maxLength: LIMITS.variableCharsMax }),
  {
    additionalProperties: false,
    maxProperties: LIMITS.variablesMax,
    default: {},
    ...prepared(prepareVariables),
    ...withMessage(
      `The variables must be an object of at most ${LIMITS.variablesMax} names (`
      + `${LIMITS.variableNameCharsMax} characters at most, without braces) and their texts.`),
  },
);

const PostCallField = Type.Object({
  name: Type.String({
    pattern: "^[a-z0-9_]{3,16}$",
    ...withMessage("The name must be 3 to 16 lowercase letters, digits or underscores."),
  }),
  type: oneOf(["string", "number", "bool"]),
  description: Type.String({ minLength: 3, maxLength: 255 }),
});

const Phrases = Type.Array(
  Type.String({ pattern: "\\S", maxLength: PHRASE_CHARS_MAX }), { maxItems: PHRASES_MAX, default: [] });
export const FillerConfig = Type.Object({
  neutral: Type.Optional(Phrases),
  negative: Type.Optional(Phrases),
  positive: Type.Optional(Phrases),
  question: Type.Optional(Phrases),
});
export type FillerConfig = Required<Static<typeof FillerConfig>>;

export const POSITIONS = [
  "bottom-right", "bottom-left", "bottom-center", "middle-right", "middle-left",
  "top-right", "top-left", "top-center",
] as const;

/** `right-bottom` is the spelling of older pages. */
function preparePosition(value: unknown): unknown {
  if (typeof value !== "string") return value;
  const reversed = value.split("-").reverse().join("-");
  return POSITIONS.find((position) => position === reversed) ?? value;
}

const WidgetSettings = Type.Object(
  {
    theme: Type.Optional(Type.String({ pattern: "\\S", maxLength: 50, default: "modern" })),
    color: Type.Optional(Type.String({
      pattern: "^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$",
      default: "#2563eb",
      ...withMessage("The color must be a hex colour such as #2563eb."),
    })),
    position: Type.Optional(oneOf(POSITIONS, {
      default: "bottom-right",
      ...prepared(preparePosition),
    })),
    remember_days: Type.Optional(Type.Integer({
      minimum: 0,
      maximum: LIMITS.widgetRememberDaysMax,
      description: "For how many days a visitor's browser keeps the conversation for all its tabs "
        + `(${LIMITS.widgetRememberDays} where it is left out); 0: each tab keeps its own`,
      examples: [7],
    })),
  },
  { default: {} },
);

/** Scheme, host and port as a browser writes them in `Origin`; what is no origin stays as it is. */
function prepareOrigin(value: unknown): unknown {
  const url = typeof value === "string" ? parseHttpUrl(value.trim()) : null;
  return url && url.pathname === "/" && url.search === "" && url.hash === "" ? url.origin : value;
}
FormatRegistry.Set("origin", (text) =>
  text === "*" || (!text.includes("*") && parseHttpUrl(text)?.origin === text));

const Origin = Type.String({
  format: "origin",
  maxLength: 300,
  ...prepared(prepareOrigin),
  ...withMessage("Each allowed origin must be like https://example.com, or *."),
});

/** A valid number of USD has no more than six decimals; checked in rules.ts. */
const SpendCap = Type.Number({ minimum: 0, maximum: SPEND_CAP_USD_MAX });

/** Must be sent on create; cannot be emptied later. */
const REQUIRED = {
  voice_id: Id(),
  language_id: Id(),
  timezone: TimeZone("The timezone must be a valid time zone."),
  system_prompt: NonBlank(LIMITS.promptCharsMax),
};

/** May be left out: then, and when set to null, the default holds. */
const DEFAULTED = {
  secondary_language_ids: Ids(),
  tool_ids: Ids(),
  tools: Type.Array(BuiltInTool, { maxItems: TOOLS_MAX, default: [] }),
  tts_emotion_enabled: Flag(true),
  voice_stability: Ranged(0, 1, 0.7),
  voice_similarity: Ranged(0, 1, 0.5),
  speech_speed: Type.Number({
    minimum: 0.7,
    maximum: 1.2,
    default: 1,
    ...withMessage("Speech speed must be between 0.7 and 1.2."),
  }),
  llm_temperature: Ranged(0, 1, 0.1),
  allow_interruptions: Flag(true),
  fillers: Flag(false),
  record: Flag(false),
  enable_noise_cancellation: Flag(true),
  wait_for_customer: Flag(false),
  max_duration: Whole(20, 1200, 600),
  max_silence_duration: Whole(1, 360, 40),
  ringing_time: Whole(1, 60, 30),
  reengagement_interval: Whole(7, 600, 30),
  end_call_on_voicemail: Flag(true),
  endpoint_type: oneOf(["vad", "ai"], { default: "vad" }),
  endpoint_sensitivity: Ranged(0, 5, 0.5),
  interrupt_sensitivity: Ranged(0, 5, 0.5),
  min_interrupt_words: Whole(0, 10, 0),
  ambient_sound: oneOf(
    ["off", "office", "city", "forest", "crowded_room", "cafe", "nature"], { default: "off" }),
  ambient_sound_volume: Ranged(0, 1, 0.5),
  is_webhook_active: Flag(false),
  send_webhook_only_on_completed: Flag(true),
  include_recording_in_webhook: Flag(true),
  recogniser_hints: Type.Array(NonBlank(HINT_CHARS_MAX), {
    maxItems: LIMITS.recogniserHintsMax,
    default: [],
    description: "Names and words callers are likely to say, told to the speech recogniser beside "
      + "the assistant's name, its variables and the titles of its knowledge",
    examples: [["Parley", "Zwickau"]],
  }),
  post_call_evaluation: Flag(true),
  post_call_schema: Type.Array(PostCallField, {
    maxItems: SCHEMA_FIELDS_MAX,
    default: [
      { name: "status", type: "bool", description: "Whether the goal of the call was reached" },
      { name: "summary", type: "string", description: "Short summary of the call" },
    ],
  }),
  variables: Variables,
  conversation_inactivity_timeout: Whole(1, 1440, 30),
  conversation_ended_retrigger: Flag(false),
  widget_settings: WidgetSettings,
};

/** Null until set. */
const CLEARABLE = {
  llm_model_id: Id(),
  multimodal_model_id: Id(),
  chat_llm_fallback_id: Id(),
  turn_detection_threshold: Ranged(0, 1),
  knowledgebase_id: Id(),
  knowledgebase_mode: oneOf(["function_call", "prompt"]),
  /** Null: chosen from the language. */
  synthesizer_provider_id: Id(),
  transcriber_provider_id: Id(),
  /** Null: the phrases of the language. */
  filler_config: FillerConfig,
  max_initial_silence_duration: Whole(1, 120),
  reengagement_prompt: LongText,
  voice_mail_message: LongText,
  webhook_url: HttpUrl("The webhook url must be a valid URL."),
  inbound_webhook_url: HttpUrl("The inbound webhook url must be a valid URL."),
  conversation_ended_webhook_url: HttpUrl("The conversation ended webhook url must be a valid URL."),
  /** Null: the server's own list. */
  allowed_origins: Type.Array(Origin, { maxItems: ORIGINS_MAX }),
  /** USD a day; null: the server's own cap. */
  daily_spend_cap: SpendCap,
};

/** What the database itself must know: columns of the assistant, not part of the JSON. */
const COLUMNS_REQUIRED = {
  name: NonBlank(NAME_CHARS_MAX),
  type: oneOf(ASSISTANT_TYPES),
  mode: oneOf(MODES),
};
const COLUMNS_DEFAULTED = {
  status: oneOf(ASSISTANT_STATUSES, { default: "inactive" }),
  label_ids: Ids(),
};
const COLUMNS_CLEARABLE = { folder_id: Id(), phone_number_id: Id() };

/** Clients send blanks for what they leave empty. */
const blankIsNull = prepared((value) =>
  typeof value === "string" && value.trim() === "" ? null : value);

type NullableFields<P extends TProperties> = { [K in keyof P]: TUnion<[P[K], TNull]> };
type OptionalFields<P extends TProperties> = { [K in keyof P]: TOptional<P[K]> };

const mapped = (fields: TProperties, change: (schema: TSchema) => TSchema): TProperties =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, change(schema)]));

function nullable<P extends TProperties>(fields: P): NullableFields<P> {
  const change = (schema: TSchema): TSchema => {
    const value = schema.default === undefined ? {} : { default: schema.default as unknown };
    return Type.Union([schema, Type.Null()], { ...blankIsNull, ...value });
  };
  return mapped(fields, change) as NullableFields<P>;
}

function optional<P extends TProperties>(fields: P): OptionalFields<P> {
  return mapped(fields, (schema) => Type.Optional(schema)) as OptionalFields<P>;
}

const InitialMessage = Type.String({ maxLength: 200 });

/** What is stored as JSON; every member is there. */
export const AssistantSettings = Type.Object({
  ...REQUIRED,
  initial_message: InitialMessage,
  ...DEFAULTED,
  ...nullable(CLEARABLE),
});
export type AssistantSettings = Static<typeof AssistantSettings>;

const OPTIONAL = optional(
  nullable({ ...DEFAULTED, ...COLUMNS_DEFAULTED, ...CLEARABLE, ...COLUMNS_CLEARABLE }));

export const CreateBody = Type.Object(
  { ...COLUMNS_REQUIRED, ...REQUIRED, initial_message: InitialMessage, ...OPTIONAL },
  collectingErrors,
);

export const UpdateBody = Type.Object(
  {
    ...optional(COLUMNS_REQUIRED),
    ...optional(REQUIRED),
    ...optional(nullable({ initial_message: Type.String({ maxLength: 200, default: "" }) })),
    ...OPTIONAL,
  },
  collectingErrors,
);

/** Settings and columns together under the contract's names: what rules judge. */
export type Profile = AssistantSettings & {
  name: string;
  type: AssistantType;
  status: AssistantStatus;
  mode: Mode;
  folder_id: number | null;
  phone_number_id: number | null;
  label_ids: number[];
};
export type Field = keyof Profile;
/** What a client sent, valid by itself; null asks for the default. */
export type Given = Static<typeof UpdateBody>;

const defaultsOf = (fields: TProperties): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) =>
    [name, completed(schema, schema.default ?? null)]));

/**
 * A copy of a valid value without members the schema does not know, and with the defaults of those
 * it does. Not TypeBox's Value.Default: that lays a given list over the default one.
 */
function completed(schema: TSchema, value: unknown): unknown {
  const members = schema.anyOf as TSchema[] | undefined;
  const member = members?.find((candidate) => Value.Check(candidate, value));
  if (member) return completed(member, value);
  if (Array.isArray(value)) return value.map((item) => completed(schema.items as TSchema, item));
  if (schema.properties === undefined) return structuredClone(value);
  const given = value as Record<string, unknown>;
  const result: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(schema.properties as TProperties)) {
    const item = Object.hasOwn(given, name) ? given[name] : property.default as unknown;
    if (item !== undefined) result[name] = completed(property, item);
  }
  return result;
}

const SETTINGS_DEFAULTS = defaultsOf({ ...DEFAULTED, ...nullable(CLEARABLE) });
const DEFAULTS: Record<string, unknown> = {
  ...SETTINGS_DEFAULTS,
  ...defaultsOf({ ...COLUMNS_DEFAULTED, ...nullable(COLUMNS_CLEARABLE) }),
  initial_message: "",
};
const FIELDS: TProperties = UpdateBody.properties;

/** Fresh copies of every default; what is required is not among them. */
export function defaults(): Partial<Profile> {
  return structuredClone(DEFAULTS) as Partial<Profile>;
}

/** What was sent, as it is stored: unknown members dropped, null replaced by the default. */
export function normalized(given: Given): Partial<Profile> {
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    const schema = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
    if (!schema || value === undefined) continue;
    const kept = value === null ? structuredClone(DEFAULTS[name]) : completed(schema, value);
    result[name] = Array.isArray(kept) && name.endsWith("_ids") ? [...new Set(kept)] : kept;
  }
  if (typeof result.name === "string") result.name = result.name.trim();
  return result as Partial<Profile>;
}

/** Settings the stored ones have not heard of yet, at their defaults; neither is to be changed. */
export function withNewerSettings(stored: AssistantSettings): AssistantSettings {
  return { ...(SETTINGS_DEFAULTS as Partial<AssistantSettings>), ...stored };
}

/** Parts the profile into the columns and the JSON. */
export function settingsOf(profile: Profile): AssistantSettings {
  const { name, type, status, mode, folder_id, phone_number_id, label_ids, ...settings } = profile;
  return settings;
}
