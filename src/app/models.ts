// The model catalog: the operator's own or the shipped one. Called by serve.ts and the commands.
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { readFileSync } from "node:fs";
import { environmentValue, type Config } from "#config/config.ts";
import { whyUnread } from "#core/disk.ts";
import { programFile } from "#core/program.ts";
import { endpointsOf } from "#providers/models/openai-compatible.ts";
import { ModelEntry as ModelEntrySchema, type ModelEntry } from "#providers/models/catalog.ts";

const CATALOG_FILE = programFile("data/models.json");

type ModelsOutcome =
  /** `warnings`: what the operator's file names that is not there. */
  | { kind: "ok"; entries: ModelEntry[]; warnings: string[] }
  | { kind: "invalid"; problems: string[] };

/** The model catalog, validated, with the keys its entries name by `key_env` filled in. */
export function loadModels(config: Config, valueOf = environmentValue): ModelsOutcome {
  const path = config.PARLEY_MODELS_FILE ?? CATALOG_FILE;
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
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
  // The shipped one offers models whose keys few have all of.
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
      ? [`PARLEY_MODELS_FILE: the fallback_id of model ${id}, ${fallback}, is no other model`]
      : [],
  ];
};

/** Where the server of this address lists its models. */
export function modelListOf(url: string): string {
  const { origin, modelsPath } = endpointsOf(url);
  return `${origin}${modelsPath}`;
}
