// `{{variable}}` substitution: one pass, never scanned again, so that a value cannot smuggle in
// another placeholder.
import { LIMITS } from "#core/limits.ts";
import { wholeStart } from "#core/values.ts";

// One bounded repetition without a brace in it: linear on any input.
const PLACEHOLDER = /\{\{([^{}\r\n]{1,160})\}\}/g;

/** `fill` receives each name without the blanks around it, and the placeholder as written. */
export const fillNames = (
  text: string, fill: (name: string, placeholder: string) => string,
): string =>
  text.replace(PLACEHOLDER, (placeholder, inner: string) => fill(inner.trim(), placeholder));

/** Unknown names stay as they are. */
export function fillTemplate(template: string, variables: Record<string, string>): string {
  const filled = fillNames(template, (name, placeholder) =>
    Object.hasOwn(variables, name) ? (variables[name] ?? "") : placeholder);
  return wholeStart(filled, LIMITS.promptCharsMax);
}
