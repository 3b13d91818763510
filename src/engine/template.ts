// `{{variable}}` substitution: one pass, never scanned again, so that a value cannot smuggle in
// another placeholder. Unknown names stay as they are.
import { LIMITS } from "#core/limits.ts";
import { wholeStart } from "#core/values.ts";

// One bounded repetition without a brace in it: linear on any input.
const PLACEHOLDER = /\{\{([^{}\r\n]{1,160})\}\}/g;

export function fillTemplate(template: string, variables: Record<string, string>): string {
  const filled = template.replace(PLACEHOLDER, (placeholder, inner: string) => {
    const name = inner.trim();
    return Object.hasOwn(variables, name) ? (variables[name] ?? "") : placeholder;
  });
  return wholeStart(filled, LIMITS.promptCharsMax);
}
