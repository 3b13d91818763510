// The questions before a conversation: their answers become its variables.
import { make } from "./elements.ts";
import type { Field, Options } from "./options.ts";
import type { Say } from "./texts.ts";

const ANSWER_CHARS_MAX = "500";
const AUTOFILL = { email: "email", tel: "tel", text: "on", textarea: "off" } as const;

function control({ name, type, required }: Field): HTMLInputElement | HTMLTextAreaElement {
  const attributes = {
    name, maxlength: ANSWER_CHARS_MAX, autocomplete: AUTOFILL[type], dir: "auto",
    ...(required ? { required: "" } : {}),
  };
  return type === "textarea"
    ? make("textarea", { ...attributes, rows: "3" })
    : make("input", { ...attributes, type });
}

export function createForm(
  { fields, formTitle, formText }: Options, say: Say,
  submit: (variables: Record<string, string>) => void,
): { element: HTMLFormElement; label(): void } {
  const controls = fields.map((field) => ({ field, control: control(field), words: make("span") }));
  const title = make("h3", { dir: "auto" });
  const start = make("button", { class: "main" });
  const element = make("form", { class: "ask" }, title,
    ...(formText === undefined ? [] : [make("p", { dir: "auto" }, formText)]),
    ...controls.map((entry) => make("label", {}, entry.words, entry.control)), start);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(Object.fromEntries(controls
      .map((entry) => [entry.field.name, entry.control.value.trim()] as const)
      .filter(([, value]) => value !== "")));
  });
  return {
    element,
    label: () => {
      title.textContent = formTitle ?? say("form_title");
      start.textContent = say("start");
      for (const { field: { label, required }, words } of controls) {
        words.textContent = required ? label : say("optional", { label });
      }
    },
  };
}
