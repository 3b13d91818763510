// The model catalog: the operator's own or the shipped one. Called by serve.ts and the commands.
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { environmentValue, type Config } from "#config/config.ts";
import { readText, whyUnread } from "#core/disk.ts";
import { programFile } from "#core/program.ts";
import { connecting } from "#outbound/connect.ts";
import { Client, request } from "#outbound/undici.ts";
import { endpointsOf } from "#providers/models/openai-compatible.ts";
import { keyHeaders } from "#providers/openai-server.ts";
import { ModelEntry as ModelEntrySchema, type ModelEntry } from "#providers/models/catalog.ts";

const CATALOG_FILE = programFile("data/models.json");

type ModelsOutcome =
  /** `warnings`: entries of the operator's file that name something missing. */
  | { kind: "ok"; entries: ModelEntry[]; warnings: string[] }
  | { kind: "invalid"; problems: string[] };

/** The model catalog, validated, with the keys its entries name by `key_env` filled in. */
export function loadModels(config: Config, valueOf = environmentValue): ModelsOutcome {
  const path = config.PARLEY_MODELS_FILE ?? CATALOG_FILE;
  let value: unknown;
  try {
    value = JSON.parse(readText(path));
  } catch (error) {
    const problems = [`the model catalog ${path} cannot be read: ${whyUnread(error)}`];
    return { kind: "invalid", problems };
  }
  const schema = Type.Array(ModelEntrySchema, { minItems: 1 });
  const problems = [...Value.Errors(schema, value)].map(
    ({ path: where, message }) => `model catalog ${where}: ${message}`);
  if (problems.length > 0) return { kind: "invalid", problems };
  const entries = (value as ModelEntry[]).map((entry) => {
    const key = entry.key ?? (entry.key_env === undefined ? undefined : valueOf(entry.key_env));
    return key === undefined ? entry : { ...entry, key };
  });
  // No warnings for the shipped catalog: few operators have keys for all its models.
  const warnings = config.PARLEY_MODELS_FILE === null ? [] : entries.flatMap(namesNothing(entries));
  return { kind: "ok", entries, warnings };
}

const namesNothing = (entries: ModelEntry[]) => (entry: ModelEntry): string[] => {
  const { id, key, key_env: variable, fallback_id: fallback } = entry;
  const isModel = entries.some((other) => other.id === fallback && other.id !== id);
  return [
    ...variable !== undefined && !key
      ? [`PARLEY_MODELS_FILE: the key_env of model ${id}, ${variable}, is not set`]
      : [],
    ...fallback !== undefined && !isModel
      ? [`PARLEY_MODELS_FILE: the fallback_id of model ${id}, ${fallback}, is not another model of the file`]
      : [],
  ];
};

const TRIAL_MS = 3000;

/** Requests the list of models with the key, which costs nothing. */
export async function tryModelServer(
  config: Config, url: string, signal?: AbortSignal,
): Promise<{ ok: boolean; detail: string }> {
  const { PARLEY_MODEL_KEY: key, PARLEY_MODEL_NAME: name } = config;
  const { origin, modelsPath } = endpointsOf(url);
  const client = new Client(origin, { connect: connecting() });
  try {
    const { statusCode: status, body } = await request(origin + modelsPath, {
      dispatcher: client, method: "GET",
      signal: AbortSignal.any([AbortSignal.timeout(TRIAL_MS), ...signal ? [signal] : []]),
      headers: keyHeaders(url, key),
    });
    if (status === 401 || status === 403) {
      const detail = key === null
        ? `requires a key (${status}): set PARLEY_MODEL_KEY`
        : `refuses PARLEY_MODEL_KEY (${status})`;
      return { ok: false, detail };
    }
    const answer = await body.json().catch(() => null) as { data?: { id?: unknown }[] } | null;
    const ids = Array.isArray(answer?.data) ? answer.data.map(({ id }) => String(id)) : [];
    // Not every server lists all models; Ollama adds `:latest` to names, Gemini prefixes `models/`.
    const isListed = name === null || ids.length === 0
      || ids.some((id) => id === name || id.startsWith(`${name}:`) || id.endsWith(`/${name}`));
    const doubt = isListed ? "" : `, but does not list ${name} (PARLEY_MODEL_NAME)`;
    return { ok: true, detail: `answers (${status})${doubt}` };
  } catch (error) {
    // For a name with several addresses, the error has only a code.
    const { message, code = "" } = error as Error & { code?: string };
    return { ok: false, detail: `does not answer: ${message || code}` };
  } finally {
    await client.destroy();
  }
}
