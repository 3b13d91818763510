// The form that an assistant's widget shows before a chat begins: what its answers must be. Called
// by routes.ts when a conversation is created.
import { fieldFault } from "#core/faults.ts";
import type { Assistant } from "#features/assistants/assistants.ts";

const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;
const TELEPHONE = /^\+?[\d\s().\/-]{5,30}$/;
const ANSWER_CHARS_MAX = 500;

/** Throws Fault 422 for the first answer that is missing or invalid. */
export function assertAnswered(
  { settings }: Pick<Assistant, "settings">, variables: Record<string, string>,
): void {
  for (const { name, type, required } of settings.widget_settings.form?.fields ?? []) {
    const answer = Object.hasOwn(variables, name) ? (variables[name] ?? "").trim() : "";
    const field = `variables.${name}`;
    if (answer === "") {
      if (required === true) throw fieldFault(field, `The ${name} field is required.`);
      continue;
    }
    const isFit = answer.length <= ANSWER_CHARS_MAX
      && (type !== "email" || EMAIL.test(answer)) && (type !== "tel" || TELEPHONE.test(answer));
    if (!isFit) throw fieldFault(field, `The ${name} field is invalid.`);
  }
}
