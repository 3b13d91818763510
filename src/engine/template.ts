// `{{variable}}` substitution: one pass, never scanned again, so that a value cannot smuggle in
// another placeholder. Unknown names stay as they are.
import { LIMITS } from "../core/limits.ts";

// No nested quantifiers: linear on any input.
const PLACEHOLDER = /\{\{\s{0,8}([A-Za-z_][A-Za-z0-9_]{0,63})\s{0,8}\}\}/g;

export function fillTemplate(template: string, variables: Record<string, string>): string {
  const filled = template.replace(PLACEHOLDER, (placeholder, name: string) =>
    Object.hasOwn(variables, name) ? (variables[name] ?? "") : placeholder);
  return filled.length > LIMITS.promptCharsMax ? filled.slice(0, LIMITS.promptCharsMax) : filled;
}
