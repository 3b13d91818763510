// The questions before a conversation: their answers become its variables.
import { make, sends } from "./elements.ts";
import type { Settings } from "./api.ts";
import { fieldsOf, type Field, type Options } from "./options.ts";
import type { Say } from "./texts.ts";

const ANSWER_CHARS_MAX = "500";
const AUTOFILL = { email: "email", tel: "tel", text: "on", textarea: "off" } as const;

function control({ name, type = "text", required }: Field): HTMLInputElement | HTMLTextAreaElement {
  const attributes = {
    name, maxlength: ANSWER_CHARS_MAX, autocomplete: AUTOFILL[type], dir: "auto",
    ...(required ? { required: "" } : {}),
  };
  return type === "textarea"
    ? make("textarea", { ...attributes, rows: "3" })
    : make("input", { ...attributes, type });
}

const filled = (entry: { field: Field; control: HTMLInputElement | HTMLTextAreaElement }) =>
  [entry.field.name, entry.control.value.trim()] as const;

export function createForm(
  options: Options, say: Say, submit: (variables: Record<string, string>) => void,
) {
  const element = make("form", { class: "ask" });
  let controls: { field: Field; control: ReturnType<typeof control> }[] = [];
  sends(element, () => {
    submit(Object.fromEntries(controls.map(filled).filter(([, value]) => value !== "")));
  });
  return {
    element,
    /** Draws the form anew; what was filled in is kept. */
    label: (settings: Settings | null): void => {
      const before = Object.fromEntries(controls.map(filled));
      const { title, text } = settings?.widget_settings.form ?? {};
      const words = options.formText ?? text;
      controls = fieldsOf(options, settings).map((field) => ({ field, control: control(field) }));
      for (const one of controls) one.control.value = before[one.field.name] ?? "";
      element.replaceChildren(
        make("h3", { dir: "auto" }, options.formTitle ?? title ?? say("form_title")),
        ...(words === undefined ? [] : [make("p", { dir: "auto" }, words)]),
        ...controls.map(({ field: { label, required }, control: input }) => make("label", {},
          required === true ? label : say("optional", { label }), input)),
        make("button", { class: "main" }, say("start")));
    },
  };
}
