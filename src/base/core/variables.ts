// Variables as every route takes them: names to texts that fill in `{{name}}`. There is one rule,
// because the same clients send every route the same variants: numbers, flags and whole objects as
// values, names with spaces, a list for an empty map, a list of maps.
import { Fault } from "./faults.ts";
import { LIMITS } from "./limits.ts";
import { firstChars, isLonger, isUnsafeKey } from "./values.ts";

type Variables = Record<string, string>;

/** A name has no braces or control characters: its placeholder would end elsewhere. */
const NAME = /^[^{}\p{Cc}]+$/u;

const isName = (name: string): boolean =>
  NAME.test(name) && !isUnsafeKey(name) && !isLonger(name, LIMITS.variableNameCharsMax);

/** Objects and lists become JSON text; null: the name has no value. */
const textOf = (value: unknown): string | null => {
  if (value === null || value === undefined) return null;
  return typeof value === "string" ? value : JSON.stringify(value);
};

/**
 * Members by name, a list of maps as one map; null: it is neither. Names without the blanks around
 * them, as placeholders are read.
 */
function mapOf(value: unknown): [name: string, value: unknown][] | null {
  if (typeof value !== "object" || value === null) return null;
  if (!Array.isArray(value)) {
    return Object.entries(value).map(([name, given]) => [name.trim(), given]);
  }
  const maps = value.map(mapOf);
  return maps.some((map) => map === null) ? null : maps.flatMap((map) => map ?? []);
}

type ReadVariables =
  | { kind: "read"; variables: Variables }
  | { kind: "invalid"; field: string; message: string };

/** The refusal of a value that is not a map. */
export const NO_MAP = "The variables must be an object.";
export const TOO_MANY = `The variables may not have more than ${LIMITS.variablesMax} items.`;

const invalid = (field: string, message: string): ReadVariables =>
  ({ kind: "invalid", field, message });

/** `null` as a value leaves the name out, so that a default may stand in for it. */
export function readVariables(value: unknown): ReadVariables {
  if (value === undefined || value === null) return { kind: "read", variables: {} };
  const entries = mapOf(value);
  if (entries === null) return invalid("variables", NO_MAP);
  const variables: Variables = {};
  for (const [name, given] of entries) {
    const field = `variables.${firstChars(name, LIMITS.variableNameCharsMax)}`;
    if (!isName(name)) {
      return invalid(field, `The ${field} name is invalid: names have at most `
        + `${LIMITS.variableNameCharsMax} characters and no braces.`);
    }
    const text = textOf(given);
    if (text === null) continue;
    if (isLonger(text, LIMITS.variableCharsMax)) {
      return invalid(field,
        `The ${field} may not be greater than ${LIMITS.variableCharsMax} characters.`);
    }
    variables[name] = text;
  }
  if (Object.keys(variables).length > LIMITS.variablesMax) {
    return invalid("variables", TOO_MANY);
  }
  return { kind: "read", variables };
}

/** Throws Fault 422 that names the variable at fault. */
export function variablesFrom(value: unknown): Variables {
  const read = readVariables(value);
  if (read.kind === "read") return read.variables;
  const { field, message } = read;
  throw new Fault(422, message, { errors: { [field]: [message] } });
}

/** The same rule where nobody receives a refusal: what does not fit is left out or cut. */
export function fittingVariables(value: unknown): Variables {
  const variables: Variables = {};
  for (const [name, given] of mapOf(value) ?? []) {
    const text = isName(name) ? textOf(given) : null;
    if (text === null) continue;
    if (Object.keys(variables).length >= LIMITS.variablesMax) break;
    variables[name] = firstChars(text, LIMITS.variableCharsMax);
  }
  return variables;
}

/**
 * New values for known names, then new names while there is room: requests that are merged one
 * after the other may not add up to more than one of them may give.
 */
export function mergedVariables(known: Variables, given: Variables): Variables {
  const merged = { ...known };
  for (const [name, value] of Object.entries(given)) {
    const isFull = Object.keys(merged).length >= LIMITS.variablesMax;
    if (!isFull || Object.hasOwn(merged, name)) merged[name] = value;
  }
  return merged;
}
