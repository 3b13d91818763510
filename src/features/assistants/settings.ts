// Every setting of an assistant: rule, default and message, once. Settings keep the contract's own
// snake_case names inside and in the database (as JSON), so that this one schema validates what
// clients send, types what is stored and generates the OpenAPI document. Rules that need more than
// one field or other rows are in rules.ts.
import {
  FormatRegistry, Type, type SchemaOptions, type Static, type TNull, type TOptional,
  type TProperties, type TSchema, type TUnion,
} from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { LIMITS } from "#core/limits.ts";
import { readVariables } from "#core/variables.ts";
import {
  about, collectingErrors, HttpUrl, named, NonBlank, OneOf, prepared, TimeZone, withMessage,
} from "#core/schema.ts";
import { parseHttpUrl } from "#core/values.ts";
import { BuiltInTool } from "./built-in-tools.ts";
import { DeskSettings } from "./desk-settings.ts";
import { WidgetSettings } from "./widget-settings.ts";

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

export const Id = (options: SchemaOptions = {}) =>
  Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, ...options });
const Ids = (description: string) =>
  Type.Array(Id(), { maxItems: IDS_MAX, default: [], ...about(description, [1]) });
const Ranged = (minimum: number, maximum: number, value: number, description: string) =>
  Type.Number({ minimum, maximum, default: value, ...about(description) });
const Whole = (minimum: number, maximum: number, value: number, description: string) =>
  Type.Integer({ minimum, maximum, default: value, ...about(description) });
const Flag = (value: boolean, description: string) =>
  Type.Boolean({ default: value, ...about(description) });
const LongText = (description: string, example: string) =>
  Type.String({ maxLength: 1000, ...about(description, example) });
const Url = (what: string, kind: string) => ({
  ...HttpUrl(`The ${kind} url must be a valid URL.`),
  ...about(`${what}; null for none.`, "https://example.com/hooks/parley"),
});

/** Reads variables as every route does; invalid input becomes a value that the schema refuses. */
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
    ...about(
      "Values for `{{name}}` in prompt and messages, by name. Those of a call or conversation take precedence.",
      { company: "Ada's Flower Shop" }),
    ...prepared(prepareVariables),
    ...withMessage(
      `The variables must be an object of at most ${LIMITS.variablesMax} names (`
      + `${LIMITS.variableNameCharsMax} characters at most, without braces) and their texts.`),
  },
);

const PostCallField = Type.Object({
  name: Type.String({
    pattern: "^[a-z0-9_]{3,16}$",
    ...about("The name of the value in `evaluation`.", "appointment_made"),
    ...withMessage("The name must be 3 to 16 lowercase letters, digits or underscores."),
  }),
  type: OneOf(["string", "number", "bool"], about("The type of the value.")),
  description: Type.String({
    minLength: 3, maxLength: 255,
    ...about("What the model should find out.", "Whether the caller made an appointment"),
  }),
}, named("EvaluationField", "One thing a model evaluates about every call."));

const Phrases = (when: string, example: string) => Type.Array(
  NonBlank(PHRASE_CHARS_MAX),
  { maxItems: PHRASES_MAX, default: [], ...about(`Phrases ${when}.`, [example]) });
export const FillerConfig = Type.Object({
  neutral: Type.Optional(Phrases("for all other cases", "One moment.")),
  negative: Type.Optional(Phrases("for unhappy callers", "I am sorry to hear that.")),
  positive: Type.Optional(Phrases("for pleased callers", "Great.")),
  question: Type.Optional(Phrases("for callers' questions", "Let me see.")),
}, about("Short phrases said while the answer is prepared; null for those of the language."));
export type FillerConfig = Required<Static<typeof FillerConfig>>;

/** Normalises to a browser's `Origin` spelling; anything but an origin is left unchanged. */
function prepareOrigin(value: unknown): unknown {
  const url = typeof value === "string" ? parseHttpUrl(value.trim()) : null;
  return url && url.pathname === "/" && url.search === "" && url.hash === "" ? url.origin : value;
}
FormatRegistry.Set("origin", (text) =>
  text === "*" || (!text.includes("*") && parseHttpUrl(text)?.origin === text));

const Origin = Type.String({
  format: "origin",
  maxLength: 300,
  ...about("Scheme, host and port of a site, or `*`.", "https://example.com"),
  ...prepared(prepareOrigin),
  ...withMessage("Each allowed origin must be like https://example.com, or *."),
});

/** Amounts have at most six decimals, which rules.ts checks. */
const SpendCap = Type.Number({
  minimum: 0, maximum: SPEND_CAP_USD_MAX,
  ...about("The maximum the assistant may spend per UTC day, in USD; null for the server's cap.", 25),
});

/** Chosen by rules.ts where they are not sent; cannot be cleared later. */
const CHOSEN = {
  voice_id: Id(about("The voice: an `id` from `GET /user/assistants/voices`.", 1)),
  language_id: Id(about(
    "The language it speaks and understands: an `id` from `GET /user/assistants/languages`.", 1)),
  timezone: {
    ...TimeZone("The timezone must be a valid time zone."),
    ...about("The IANA time zone of its dates and times.", "Europe/Berlin"),
  },
};
/** Must be sent on create; cannot be emptied later. */
const REQUIRED = {
  system_prompt: NonBlank(LIMITS.promptCharsMax, about(
    "The instructions to the model: who it is, what it knows, what it may do. `{{name}}` is filled in.",
    "You answer the telephone of {{company}}. Be brief and friendly.")),
};

/** May be left out: then, and when set to null, the default holds. */
const DEFAULTED = {
  secondary_language_ids: Ids("Languages it switches to when the caller speaks one of them."),
  tool_ids: Ids("Your own tools it may call: `id`s from `GET /user/tools`. Replaced as a whole."),
  tools: Type.Array(BuiltInTool, {
    maxItems: TOOLS_MAX, default: [],
    ...about("Built-in tools it may use. Replaced as a whole.", [{ type: "end_call" }]),
  }),
  tts_emotion_enabled: Flag(true, "Whether the voice may express emotion, if it supports it."),
  voice_stability: Ranged(0, 1, 0.7, "The stability of the voice: low is livelier, high more even. For voices that support it."),
  voice_similarity: Ranged(0, 1, 0.5, "How close to the original voice. For voices that support it."),
  speech_speed: Type.Number({
    minimum: 0.7,
    maximum: 1.2,
    default: 1,
    ...about("The speaking rate; 1 is the voice's own."),
    ...withMessage("Speech speed must be between 0.7 and 1.2."),
  }),
  llm_temperature: Ranged(0, 1, 0.1, "The model's sampling temperature; 0 gives the most predictable answers."),
  allow_interruptions: Flag(true, "Whether the caller can interrupt it by speaking."),
  fillers: Flag(false, "Whether it says short phrases while an answer is prepared."),
  record: Flag(false, "Whether calls are recorded."),
  wait_for_customer: Flag(false, "Whether the caller speaks first; otherwise the assistant greets."),
  max_duration: Whole(20, 1200, 600, "The maximum duration of a call, in seconds."),
  max_silence_duration: Whole(1, 360, 40, "Seconds of silence after which it prompts the caller."),
  ringing_time: Whole(1, 60, 30, "How long an outbound call may ring, in seconds."),
  reengagement_interval: Whole(7, 600, 30,
    "Seconds until it prompts again; after a few unanswered prompts it ends the call."),
  end_call_on_voicemail: Flag(true, "Whether to end a call that an answering machine answered."),
  endpoint_type: OneOf(["vad", "ai"], {
    default: "vad",
    ...about("How the end of a caller's turn is detected. Both wait for a silence whose length depends "
      + "on the words; `ai` waits longer after an unfinished sentence."),
  }),
  endpoint_sensitivity: Ranged(0, 5, 0.5,
    "How soon it answers: 0 waits for 1.2 s of silence, 1 or more for 0.3 s, plus what depends on the words."),
  interrupt_sensitivity: Ranged(0, 5, 0.5,
    "How easily it is interrupted: 0 needs loud speech of 0.2 s, 1 or more the faintest speech of 0.06 s."),
  min_interrupt_words: Whole(0, 10, 0, "The minimum number of words that interrupt it; 0 for any speech."),
  ambient_sound: OneOf(
    ["off", "office", "city", "forest", "crowded_room", "cafe", "nature"],
    { default: "off", ...about("The background sound.") }),
  ambient_sound_volume: Ranged(0, 1, 0.5, "The volume of the background sound."),
  is_webhook_active: Flag(false, "Whether calls are sent to `webhook_url` when they end."),
  send_webhook_only_on_completed: Flag(true, "Whether only answered calls are sent."),
  include_recording_in_webhook: Flag(true, "Whether the webhook contains a link to the recording."),
  recogniser_hints: Type.Array(NonBlank(HINT_CHARS_MAX, about("A name or word.", "Zwickau")), {
    maxItems: LIMITS.recogniserHintsMax,
    default: [],
    ...about("Names and words callers are likely to say: hints for the speech recogniser, in"
      + " addition to the assistant's name, its variables and its document titles.",
    ["Parley", "Zwickau"]),
  }),
  post_call_evaluation: Flag(true, "Whether a model evaluates calls by `post_call_schema`."),
  post_call_schema: Type.Array(PostCallField, {
    maxItems: SCHEMA_FIELDS_MAX,
    ...about("What the evaluation finds out about every call. Replaced as a whole."),
    default: [
      { name: "status", type: "bool", description: "Whether the goal of the call was reached" },
      { name: "summary", type: "string", description: "Short summary of the call" },
    ],
  }),
  variables: Variables,
  conversation_inactivity_timeout: Whole(1, 1440, 30,
    "Minutes without a message after which a text conversation counts as ended."),
  conversation_ended_retrigger: Flag(false,
    "Whether a conversation that continues after its end is sent again when it ends again."),
  widget_settings: WidgetSettings,
  desk: DeskSettings,
};

/** Null until set. */
const CLEARABLE = {
  llm_model_id: Id(about(
    "The language model for text and pipeline calls: an `id` from `GET /user/assistants/models`.", 1)),
  multimodal_model_id: Id(about(
    "The speech model for multimodal and dualplex calls: an `id` from `…/models?type=multimodal`.",
    102)),
  chat_llm_fallback_id: Id(about(
    "The model for text in multimodal mode; null for the server's first.", 1)),
  turn_detection_threshold: Type.Number({
    minimum: 0, maximum: 1,
    ...about("How loud speech must be in multimodal mode; null for the model's default.", 0.5),
  }),
  knowledgebase_id: Id(about("The knowledgebase it uses; null for none.", 1)),
  knowledgebase_mode: OneOf(["function_call", "prompt"], about(
    "function_call: the model searches when it needs to. prompt: matching passages are always put into the prompt.")),
  synthesizer_provider_id: Id(about("The speech synthesizer; null to choose by language.", 1)),
  transcriber_provider_id: Id(about("The speech recogniser; null to choose by language.", 1)),
  filler_config: FillerConfig,
  max_initial_silence_duration: Type.Integer({
    minimum: 1, maximum: 120,
    ...about("Seconds a caller may be silent at the beginning; null for the same as later.", 20),
  }),
  reengagement_prompt: LongText(
    "The instruction for what to say after silence; null for a short question.", "Ask if they are still there."),
  voice_mail_message: LongText(
    "What it says to an answering machine; null for nothing.", "Please call us back."),
  webhook_url: Url("The URL calls are sent to when they end", "webhook"),
  inbound_webhook_url: Url("The URL that is asked for variables before an inbound call is answered", "inbound webhook"),
  conversation_ended_webhook_url: Url(
    "The URL ended text conversations are sent to", "conversation ended webhook"),
  allowed_origins: Type.Array(Origin, {
    maxItems: ORIGINS_MAX,
    ...about("Sites whose pages may use it; null for the server's list.", ["https://example.com"]),
  }),
  daily_spend_cap: SpendCap,
  // Stored as null where it was never sent, to tell that apart from an explicit choice.
  enable_noise_cancellation: Type.Boolean(about(
    "Whether noise is removed before speech is recognised, in at least some calls;"
    + " `noise_cancellation` says in which. In a request, true means everywhere, false off and"
    + " null web.", true)),
};

/** The stored value of each; null, which nobody chose, means only where it helps: on the web. */
const NOISE_CANCELLED = { off: false, web: null, everywhere: true } as const;
const NOISE_CANCELLATION = ["off", "web", "everywhere"] as const;
export const NoiseCancellation = OneOf(NOISE_CANCELLATION, about(
  "In which calls noise is removed before speech is recognised: off, web (the default: on the "
  + "telephone it makes speech harder to understand) or everywhere. Takes precedence over "
  + "`enable_noise_cancellation`.",
  "web"));

export const noiseCancellationOf = (stored: boolean | null): Static<typeof NoiseCancellation> =>
  NOISE_CANCELLATION.find((where) => NOISE_CANCELLED[where] === stored) ?? "web";

/** Fields that the database itself needs: columns of the assistant, not part of the JSON. */
const COLUMNS_REQUIRED = {
  name: NonBlank(NAME_CHARS_MAX, about("The name, shown in lists and records.", "Front desk")),
};
const COLUMNS_CHOSEN = {
  type: OneOf(ASSISTANT_TYPES, about("Whether it answers calls (inbound) or makes them (outbound).")),
  mode: OneOf(MODES, about(
    "How it talks: recogniser, language model and voice (pipeline), one speech model (multimodal), "
    + "or a speech model with a separate voice (dualplex).")),
};
const COLUMNS_DEFAULTED = {
  status: OneOf(ASSISTANT_STATUSES, {
    default: "inactive",
    ...about("active or inactive. An inactive assistant neither answers nor makes calls; text conversations work either way."),
  }),
  label_ids: Ids("Its labels: `id`s from `GET /user/labels`. Replaced as a whole."),
};
const COLUMNS_CLEARABLE = {
  folder_id: Id(about("The folder it is in; null for none.", 1)),
  phone_number_id: Id(about(
    "The number it is called on and calls from; null for none.", 1)),
};

/** Clients send blank strings for fields that are left empty. */
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

const INITIAL = {
  maxLength: 200,
  ...about("What it says first; empty for nothing. `{{name}}` is filled in.", "Hello, how can I help?"),
};
const InitialMessage = Type.String(INITIAL);

/** What is stored as JSON; no member is optional. */
export const AssistantSettings = Type.Object({
  ...CHOSEN,
  ...REQUIRED,
  initial_message: InitialMessage,
  ...DEFAULTED,
  ...nullable(CLEARABLE),
});
export type AssistantSettings = Static<typeof AssistantSettings>;

const OPTIONAL = optional(nullable({
  ...DEFAULTED, ...COLUMNS_DEFAULTED, ...CLEARABLE, ...COLUMNS_CLEARABLE,
  noise_cancellation: NoiseCancellation,
}));

export const CreateBody = Type.Object(
  {
    ...COLUMNS_REQUIRED,
    ...REQUIRED,
    ...optional({ ...COLUMNS_CHOSEN, ...CHOSEN, initial_message: InitialMessage }),
    ...OPTIONAL,
  },
  collectingErrors,
);

export const UpdateBody = Type.Object(
  {
    ...optional({ ...COLUMNS_REQUIRED, ...COLUMNS_CHOSEN, ...CHOSEN, ...REQUIRED }),
    ...optional(nullable({ initial_message: Type.String({ ...INITIAL, default: "" }) })),
    ...OPTIONAL,
  },
  {
    ...collectingErrors,
    ...named("AssistantChanges", "Assistant settings; only the fields you send change."),
  },
);

/** Settings and columns together under the contract's names, as rules judge them. */
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
 * A copy of a valid value, without members unknown to the schema and with the defaults of absent
 * ones. Not TypeBox's Value.Default, which merges a given list into the default one.
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

/** Fresh copies of all defaults; required and chosen fields have none. */
export function defaults(): Partial<Profile> {
  return structuredClone(DEFAULTS) as Partial<Profile>;
}

/** The input as it is stored: unknown members dropped, null replaced by the default. */
export function normalized(given: Given): Partial<Profile> {
  const result: Record<string, unknown> = {};
  const { noise_cancellation: noise, ...named } = given;
  for (const [name, value] of Object.entries(named)) {
    const schema = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
    if (!schema || value === undefined) continue;
    const kept = value === null ? structuredClone(DEFAULTS[name]) : completed(schema, value);
    result[name] = Array.isArray(kept) && name.endsWith("_ids") ? [...new Set(kept)] : kept;
  }
  if (typeof result.name === "string") result.name = result.name.trim();
  if (noise !== undefined) result.enable_noise_cancellation = NOISE_CANCELLED[noise ?? "web"];
  return result as Partial<Profile>;
}

/** Adds newer settings at their defaults. Both inputs and result are shared: do not change them. */
export function withNewerSettings(stored: AssistantSettings): AssistantSettings {
  return { ...(SETTINGS_DEFAULTS as Partial<AssistantSettings>), ...stored };
}

/** The profile without its columns: what is stored as JSON. */
export function settingsOf(profile: Profile): AssistantSettings {
  const { name, type, status, mode, folder_id, phone_number_id, label_ids, ...settings } = profile;
  return settings;
}
