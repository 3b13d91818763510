// Reads the configuration; the only file that reads process.env. All mistakes are reported at once;
// a secret may come from a file named by `<NAME>_FILE`. The settings are in settings.ts.
import { readFileSync } from "node:fs";
import { whyUnread } from "#core/disk.ts";
import type { Setting } from "./setting.ts";
import { contradictions } from "./contradictions.ts";
import { proxyWarnings } from "./proxy.ts";
import { NEEDS, SETTINGS, TOGETHER } from "./settings.ts";
import { pathWarnings, problem } from "./values.ts";

type Settings = typeof SETTINGS;
export type Config = { [Name in keyof Settings]: Settings[Name]["default"] };

type ConfigOutcome =
  | { kind: "ok"; config: Config; warnings: string[] }
  | { kind: "invalid"; problems: string[]; warnings: string[] };

/** The exit code where settings are wrong (sysexits: EX_CONFIG). */
export const EXIT_CONFIG = 78;

/** Files of the server's key and certificate, which are set together; null: it has no TLS. */
export function tlsFilesOf(
  { PARLEY_TLS_KEY_FILE: keyFile, PARLEY_TLS_CERT_FILE: certFile }: Config,
): { keyFile: string; certFile: string } | null {
  return keyFile !== null && certFile !== null ? { keyFile, certFile } : null;
}

type Environment = Record<string, string | undefined>;

/**
 * Environment files leave spaces and carriage returns after values, and no value begins or ends
 * with them. Only the secret is taken as given, for it may have sealed what is at rest.
 */
function spelt(name: string, environment: Environment): string | undefined {
  const value = environment[name] ?? "";
  return (name === "PARLEY_SECRET" ? value : value.trim()) || undefined;
}

function readRaw(
  name: string,
  isSecret: boolean,
  environment: Environment,
): { value: string | undefined } | { problem: string } {
  const value = spelt(name, environment);
  const path = isSecret ? spelt(`${name}_FILE`, environment) : undefined;
  if (path === undefined) return { value };
  if (value !== undefined) return problem(`${name} and ${name}_FILE are both set`);
  try {
    const secret = readFileSync(path, "utf8").trim();
    return secret === "" ? problem(`${name}_FILE is empty: ${path}`) : { value: secret };
  } catch (error) {
    return problem(`${name}_FILE cannot be read: ${path}: ${whyUnread(error)}`);
  }
}

/** Levenshtein's: how many letters to insert, remove or change. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [line, letter] of [...from].entries()) {
    const next = [line + 1];
    for (let column = 0; column < to.length; column += 1) {
      const changed = (row[column] ?? 0) + (letter === to[column] ? 0 : 1);
      next.push(Math.min(changed, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

/** The setting that was probably meant: at most two in five letters of its own are different. */
function closestName(unknown: string): string | null {
  const [best] = Object.keys(SETTINGS)
    .map((name) => ({ name, changes: editDistance(unknown, name) }))
    .sort((left, right) => left.changes - right.changes);
  if (!best) return null;
  return best.changes <= 0.4 * (best.name.length - "PARLEY".length) ? best.name : null;
}

/** The value of a setting that cannot be read: it is set, but to what is not known. */
const UNREAD = Symbol("unread");

export function readConfig(environment: Environment = process.env): ConfigOutcome {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  const known = new Set<string>();
  for (const [name, definition] of Object.entries(SETTINGS) as [string, Setting<unknown>][]) {
    known.add(name);
    if (definition.secret) known.add(`${name}_FILE`);
    values[name] = definition.default;
    const raw = readRaw(name, definition.secret ?? false, environment);
    if ("problem" in raw) {
      problems.push(raw.problem);
      values[name] = UNREAD;
    } else if (raw.value !== undefined) {
      const parsed = definition.parse(raw.value);
      const isWrong = typeof parsed === "object" && parsed !== null && "problem" in parsed;
      if (isWrong) problems.push(`${name} ${(parsed as { problem: string }).problem}`);
      values[name] = isWrong ? UNREAD : parsed;
    }
  }
  for (const names of TOGETHER) {
    const isSet = names.filter((name) => values[name] !== null).length;
    if (isSet === 0 || isSet === names.length) continue;
    problems.push(`${names.slice(0, -1).join(", ")} and ${names.at(-1) ?? ""} must be set together`);
  }
  for (const [name, needed] of NEEDS) {
    if (values[name] === null || values[needed] !== null) continue;
    problems.push(`${name} needs ${needed}`);
  }
  problems.push(...contradictions(values));
  const warnings = Object.keys(environment)
    .filter((name) => name.startsWith("PARLEY_") && !known.has(name))
    .map((name) => {
      const closest = closestName(name);
      return `unknown setting ${name}${closest ? `; did you mean ${closest}?` : ""}`;
    });
  warnings.push(...proxyWarnings(environment), ...pathWarnings(values.PARLEY_PUBLIC_URL));
  return problems.length > 0
    ? { kind: "invalid", problems, warnings }
    : { kind: "ok", config: values as Config, warnings };
}

export interface SettingDescription {
  name: string;
  default: string;
  description: string;
  secret: boolean;
}

/** One row per setting, for `parley settings` and docs/configuration.md. */
export function describeSettings(): SettingDescription[] {
  return (Object.entries(SETTINGS) as [string, Setting<unknown>][]).map(([name, definition]) => ({
    name,
    default: spellDefault(definition),
    description: definition.parse.bounds === undefined
      ? definition.description : `${definition.description} (${definition.parse.bounds})`,
    secret: definition.secret ?? false,
  }));
}

function spellDefault({ default: value, spell }: Setting<unknown>): string {
  if (value === null || value === undefined) return "";
  if (spell) return spell(value);
  if (typeof value === "boolean") return value ? "on" : "off";
  return Array.isArray(value) ? value.join(",") : String(value);
}

/** A variable that is no setting: what another setting names, such as a model's `key_env`. */
export const environmentValue = (name: string): string | undefined =>
  spelt(name, process.env);
