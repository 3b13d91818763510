// The models an assistant may choose, and the adaptor behind each. The list is a file (shipped:
// data/models.json), read and validated by config; made once, in app.ts.
import { Type, type Static } from "@sinclair/typebox";
import { MisconfiguredStart, ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { OneOf } from "#core/schema.ts";
import type { System } from "#core/system.ts";
import { REALTIME_VENDORS, type RealtimeVendor } from "#providers/speech/port.ts";
import { parseHttpUrl } from "#core/values.ts";
import { createOfflineModel } from "./offline.ts";
import {
  createOpenAiCompatibleModel,
  type OpenAiCompatibleModel,
  type OpenAiCompatibleOptions,
} from "./openai-compatible.ts";
import { SIGHTS, type LanguageModel, type ModelDelta, type ModelRequest, type Sight } from "./port.ts";

const MODEL_TYPES = ["llm", "multimodal", "dualplex"] as const;
type ModelType = (typeof MODEL_TYPES)[number];

/** One model of the models file. */
export const ModelEntry = Type.Object(
  {
    /** Unique over all types; assistants refer to it, so it must never go to another model. */
    id: Type.Integer({ minimum: 1 }),
    name: Type.String({ minLength: 1, maxLength: 255 }),
    type: OneOf(MODEL_TYPES),
    /** Shown to clients with multimodal and dualplex models. */
    code: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    /** `default`: the server of PARLEY_MODEL_URL; while that is not set, the offline model. */
    provider: OneOf(["default", "offline", "openai-compatible"]),
    /** The server's name for the model. */
    model: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    /** The vendor that hears and speaks with multimodal and dualplex models; absent: `openai`. */
    realtime: Type.Optional(OneOf(REALTIME_VENDORS)),
    /** The name of the model at the vendor in `realtime`; absent: its code. */
    realtime_model: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    /** Absent: the server of PARLEY_MODEL_URL, with its key. */
    url: Type.Optional(Type.String({ pattern: "^https?://", maxLength: 2048 })),
    /** Name of the environment variable that holds the key; config puts its value into `key`. */
    key_env: Type.Optional(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$", maxLength: 255 })),
    key: Type.Optional(Type.String({ maxLength: 4096 })),
    /** The model that answers when this one fails before its first word. */
    fallback_id: Type.Optional(Type.Integer({ minimum: 1 })),
    /** Overrides the assistant's, for models that take one value only. */
    temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
    /** What it can look at beside text; absent: nothing. */
    sees: Type.Optional(Type.Array(OneOf(SIGHTS))),
    /** The server's name for the bound of a reply. */
    tokens_field: Type.Optional(OneOf(["max_tokens", "max_completion_tokens"])),
  },
  { additionalProperties: false },
);
export type ModelEntry = Static<typeof ModelEntry>;

interface RealtimeModel {
  vendor: RealtimeVendor;
  /** The vendor's name for the model; null: the one in the setting. */
  model: string | null;
}

export interface ModelCatalogOptions {
  entries: ModelEntry[];
  /** The PARLEY_MODEL_* settings: the server of entries without a `url`. */
  fallback: {
    url: string | null; key: string | null; name: string | null;
    /** What the model there can look at beside text. */
    sees?: readonly Sight[];
  };
  /** Why the vendor's speech-to-speech models cannot be used, in one sentence; null: they can. */
  whyRealtimeMissing(vendor: RealtimeVendor): string | null;
  system: System;
  log: Logger;
  limits?: OpenAiCompatibleOptions["limits"];
  offlinePaceMs?: number | undefined;
}

interface ListedModel {
  id: number;
  name: string;
  code?: string;
  /** As `whyMissing`. */
  missing: string | null;
}

export interface ModelCatalog {
  /** Null: there is no such model. */
  nameOf(id: number): string | null;
  /** In the order of the file; `code` where the entry has one. */
  list(type: ModelType): ListedModel[];
  /** Why another model answers in its place, in one sentence; null: the model itself answers. */
  whyMissing(id: number): string | null;
  /** The offline model answers, which calls no function but the search of a knowledgebase. */
  isOffline(id: number | null): boolean;
  has(id: number, type: ModelType): boolean;
  /** The speech-to-speech model behind that one, or in its place; null: there is none. */
  realtimeOf(id: number | null): RealtimeModel | null;
  /** The model of that id, whatever its type; for null or an unknown id the first llm entry. */
  resolve(id: number | null): LanguageModel;
  /** Drops all connections. Idempotent. */
  close(): Promise<void>;
}

export function createModelCatalog(options: ModelCatalogOptions): ModelCatalog {
  const { entries, log } = options;
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  if (byId.size < entries.length) throw new MisconfiguredStart("PARLEY_MODELS_FILE gives an id to two models");
  const unusable = entries.find(({ url }) => url !== undefined && parseHttpUrl(url) === null);
  if (unusable) throw new Error(`the models file has no usable url for model ${unusable.id}`);
  const first = entries.find(({ type }) => type === "llm");
  const adaptors = createAdaptors(options);
  const resolved = new Map<number, LanguageModel>();

  /** The entry's own model, joined with its fallback if it has one. Fallbacks do not chain. */
  function join(entry: ModelEntry): LanguageModel {
    const model = adaptors.get(entry);
    const { fallback_id: fallbackId } = entry;
    if (fallbackId === undefined) return model;
    const fallback = byId.get(fallbackId);
    if (fallback && fallback !== entry) {
      return withFallback(model, adaptors.get(fallback), (error) => {
        const ids = { model_id: entry.id, fallback_id: fallbackId };
        log.warn({ ...ids, err: error }, "a model failed; its fallback answers");
      });
    }
    log.warn({ model_id: entry.id, fallback_id: fallbackId }, "a model's fallback does not exist");
    return model;
  }

  const bestRealtime = REALTIME_VENDORS.find(
    (vendor) => options.whyRealtimeMissing(vendor) === null);
  const missingOf = (entry: ModelEntry): string | null => {
    if (entry.type !== "llm") {
      const wanted = realtimeModelOf(entry)?.vendor ?? bestRealtime ?? REALTIME_VENDORS[0];
      return options.whyRealtimeMissing(wanted);
    }
    const setting = settingMissing(entry, options);
    return setting === null ? null : `The setting ${setting} is not set on this server.`;
  };
  return {
    list: (type) =>
      entries
        .filter((entry) => entry.type === type)
        .map((entry) => {
          const { id, name, code } = entry;
          return { id, name, ...(code === undefined ? {} : { code }), missing: missingOf(entry) };
        }),
    whyMissing: (id) => {
      const entry = byId.get(id);
      return entry ? missingOf(entry) : "This server no longer has this model.";
    },
    isOffline: (id) => {
      const entry = (id === null ? undefined : byId.get(id)) ?? first;
      return entry?.provider === "offline" || (options.fallback.url === null
        && (entry === undefined || settingMissing(entry, options) !== null));
    },
    nameOf: (id) => byId.get(id)?.name ?? null,
    has: (id, type) => byId.get(id)?.type === type,
    realtimeOf: (id) => {
      const wanted = realtimeModelOf(id === null ? undefined : byId.get(id));
      if (wanted && options.whyRealtimeMissing(wanted.vendor) === null) return wanted;
      return bestRealtime ? { vendor: bestRealtime, model: null } : null;
    },
    resolve(id) {
      const entry = (id === null ? undefined : byId.get(id)) ?? first;
      if (!entry) return adaptors.getDefault();
      const model = resolved.get(entry.id) ?? join(entry);
      resolved.set(entry.id, model);
      return model;
    },
    close: () => adaptors.close(),
  };
}

interface Adaptors {
  get(entry: ModelEntry): LanguageModel;
  getDefault(): LanguageModel;
  close(): Promise<void>;
}

/** Makes the adaptor of an entry when it is first asked for. */
function createAdaptors(options: ModelCatalogOptions): Adaptors {
  const { fallback, limits, log, offlinePaceMs, system } = options;
  const offline = createOfflineModel({ system, paceMs: offlinePaceMs });
  const made = new Map<number, LanguageModel>();
  const opened: OpenAiCompatibleModel[] = [];
  let standard: LanguageModel | null = null;

  function connect(entry: ModelEntry | null, url: string, key: string | null): LanguageModel {
    const model = createOpenAiCompatibleModel({
      url,
      key,
      setting: entry?.url === undefined ? "PARLEY_MODEL_URL" : undefined,
      name: entry?.model ?? fallback.name,
      tokensField: entry?.tokens_field,
      temperature: entry?.temperature,
      sees: entry?.sees ?? (url === fallback.url ? fallback.sees : undefined),
      limits,
      system,
      log,
    });
    opened.push(model);
    return model;
  }

  function getDefault(): LanguageModel {
    standard ??= fallback.url === null ? offline : connect(null, fallback.url, fallback.key);
    return standard;
  }

  function make(entry: ModelEntry): LanguageModel {
    if (entry.provider === "offline") return offline;
    const isPlain = !entry.sees && !entry.model && !entry.tokens_field
      && entry.temperature === undefined;
    if (entry.provider === "default") {
      if (fallback.url === null || isPlain) return getDefault();
      return connect(entry, fallback.url, fallback.key);
    }
    const access = accessOf(entry, fallback);
    if (access.kind === "server") return connect(entry, access.url, access.key);
    log.warn({ model_id: entry.id, missing: access.setting },
      "a model is not available; the default model answers");
    return getDefault();
  }

  return {
    get(entry) {
      const model = made.get(entry.id) ?? make(entry);
      made.set(entry.id, model);
      return model;
    },
    getDefault,
    async close() {
      await Promise.all(opened.map((model) => model.close()));
    },
  };
}

type Access =
  | { kind: "server"; url: string; key: string | null }
  /** The environment variable that would have to be set. */
  | { kind: "missing"; setting: string };

/** How an entry's model server is reached. */
function accessOf(entry: ModelEntry, fallback: ModelCatalogOptions["fallback"]): Access {
  const url = entry.url ?? fallback.url;
  if (url === null) return { kind: "missing", setting: "PARLEY_MODEL_URL" };
  // The operator's key goes to the server it was given for and to no other.
  const isOwnServer = fallback.url !== null && sameOrigin(url, fallback.url);
  const key = entry.key || (isOwnServer ? fallback.key : null);
  return !isOwnServer && entry.key_env !== undefined && key === null
    ? { kind: "missing", setting: entry.key_env }
    : { kind: "server", url, key };
}

/** The model that the entry itself names; null: any will do. */
function realtimeModelOf(entry: ModelEntry | undefined): RealtimeModel | null {
  if (!entry || entry.type === "llm" || entry.provider !== "openai-compatible") return null;
  return { vendor: entry.realtime ?? "openai", model: entry.realtime_model ?? entry.code ?? null };
}

/** The environment variable without which another model answers; null: none is missing. */
function settingMissing(entry: ModelEntry, options: ModelCatalogOptions): string | null {
  const { fallback } = options;
  if (entry.provider === "offline") return null;
  if (entry.provider === "default") return fallback.url === null ? "PARLEY_MODEL_URL" : null;
  const access = accessOf(entry, fallback);
  return access.kind === "missing" ? access.setting : null;
}

function sameOrigin(url: string, other: string): boolean {
  return new URL(url).origin === new URL(other).origin;
}

/** Lets `fallback` answer when `model` fails without having said anything. */
function withFallback(
  model: LanguageModel,
  fallback: LanguageModel,
  onFallback: (error: ProviderError) => void,
): LanguageModel {
  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelDelta[]> {
    let hasBegun = false;
    try {
      for await (const deltas of model.stream(request, signal)) {
        hasBegun = true;
        yield deltas;
      }
      return;
    } catch (error) {
      if (hasBegun || signal.aborted || !(error instanceof ProviderError)) throw error;
      onFallback(error);
    }
    yield* fallback.stream(request, signal);
  }
  // Either may answer, so only what both can look at is shown.
  const sees = (model.sees ?? []).filter((sight) => fallback.sees?.includes(sight));
  return { stream, sees };
}
