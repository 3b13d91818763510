// The questions before a conversation: their answers become its variables.
import { make } from "./elements.ts";
import type { Field, Options } from "./options.ts";

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
  { fields, formTitle, formText }: Options, submit: (variables: Record<string, string>) => void,
): { element: HTMLFormElement } {
  const controls = fields.map((field) => ({ field, control: control(field) }));
  const element = make("form", { class: "ask" },
    make("h3", { dir: "auto" }, formTitle ?? "Before we start"),
    ...(formText === undefined ? [] : [make("p", { dir: "auto" }, formText)]),
    ...controls.map((entry) => make("label", {},
      `${entry.field.label}${entry.field.required ? "" : " (optional)"}`, entry.control)),
    make("button", { class: "main" }, "Start the chat"));
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(Object.fromEntries(controls
      .map((entry) => [entry.field.name, entry.control.value.trim()] as const)
      .filter(([, value]) => value !== "")));
  });
  return { element };
}
