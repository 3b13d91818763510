// What the widget asks before a chat, and texts that replace its own. Part of the section Widget.
import { Button, SelectField, TextArea, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { useState } from "preact/hooks";
import { about } from "#ui/dashboard/pages/assistants/labels.ts";
import type { Values } from "#ui/dashboard/pages/assistants/draft.ts";

type Widget = NonNullable<Values["widget_settings"]>;
type Form = NonNullable<Widget["form"]>;
type Field = Form["fields"][number];

const FIELDS_MAX = 10;
const TYPES = [
  { value: "text", label: "A line" }, { value: "email", label: "E-mail" },
  { value: "tel", label: "Telephone" }, { value: "textarea", label: "Several lines" },
];

interface Props {
  widget: Widget;
  errors: Record<string, string>;
  replace(widget: Widget): void;
}

export function PreChatForm({ widget, errors, replace }: Props) {
  const { form, ...others } = widget;
  const set = (changes: Partial<Form>): void =>
    replace({ ...others, form: { fields: [], ...form, ...changes } });
  const setField = (at: number, changes: Partial<Field>): void => set({
    fields: (form?.fields ?? []).map((field, index) =>
      (index === at ? { ...field, ...changes } : field)),
  });
  return (
    <>
      <Toggle
        {...about("widget_settings.form")} value={form !== undefined}
        onInput={(isOn) => (isOn
          ? set({ fields: [{ name: "email", label: "Your e-mail", type: "email", required: true }] })
          : replace(others))}
      />
      {form && (
        <fieldset class="stack">
          <legend>Before the chat</legend>
          <div class="form-row">
            <TextField
              {...about("widget_settings.form.title")} value={form.title ?? ""}
              error={errors["widget_settings.form.title"]}
              onInput={(title) => set({ title })}
            />
            <TextField
              {...about("widget_settings.form.text")} value={form.text ?? ""}
              error={errors["widget_settings.form.text"]}
              onInput={(text) => set({ text })}
            />
          </div>
          {form.fields.map((field, at) => (
            <Question
              key={at} field={field} number={at + 1}
              error={(name) => errors[`widget_settings.form.fields.${at}.${name}`]}
              onInput={(changes) => setField(at, changes)}
              onRemove={() => set({ fields: form.fields.filter((_, index) => index !== at) })}
            />
          ))}
          {form.fields.length < FIELDS_MAX && (
            <p><Button onClick={() => set({
              fields: [...form.fields, { name: `answer_${form.fields.length + 1}`, label: "" }],
            })}>Another question</Button></p>
          )}
        </fieldset>
      )}
    </>
  );
}

function Question({ field, number, error, onInput, onRemove }: {
  field: Field; number: number; error(name: string): string | undefined;
  onInput(changes: Partial<Field>): void; onRemove(): void;
}) {
  return (
    <div class="form-row">
      <TextField
        label={`Question ${number}`} value={field.label} error={error("label")}
        onInput={(label) => onInput({ label })}
      />
      <TextField
        label={`Variable ${number}`} value={field.name} error={error("name")}
        onInput={(name) => onInput({ name })}
      />
      <SelectField
        label={`Kind of answer ${number}`} value={field.type ?? "text"} options={TYPES}
        onInput={(type) => onInput({ type: type as NonNullable<Field["type"]> })}
      />
      <Toggle
        label={`Question ${number} is required`} value={field.required === true}
        onInput={(required) => onInput({ required })}
      />
      <Button kind="quiet" icon="close" label={`Remove question ${number}`} onClick={onRemove} />
    </div>
  );
}

/** One per line: name of the text, equals sign, the text. */
const linesOf = (words: Record<string, string>): string =>
  Object.entries(words).map(([name, word]) => `${name} = ${word}`).join("\n");

function wordsOf(lines: string): Record<string, string> {
  const pairs = lines.split("\n").flatMap((line): [string, string][] => {
    const [, name, word] = /^\s*([a-z_]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    return name !== undefined && word !== undefined && word !== "" ? [[name, word]] : [];
  });
  return Object.fromEntries(pairs);
}

export function Words({ widget, errors, replace }: Props) {
  const [language, setLanguage] = useState(Object.keys(widget.texts ?? {})[0] ?? "en");
  const [lines, setLines] = useState(linesOf(widget.texts?.[language] ?? {}));
  const change = (text: string): void => {
    setLines(text);
    const { texts = {}, ...others } = widget;
    const { [language]: _, ...rest } = texts;
    const words = wordsOf(text);
    const next = Object.keys(words).length > 0 ? { ...rest, [language]: words } : rest;
    replace(Object.keys(next).length > 0 ? { ...others, texts: next } : others);
  };
  return (
    <div class="form-row">
      <TextField
        label="Language of the texts" value={language}
        onInput={(code) => {
          setLanguage(code);
          setLines(linesOf(widget.texts?.[code] ?? {}));
        }}
      />
      <TextArea
        {...about("widget_settings.texts")} rows={3} value={lines} onInput={change}
        placeholder={"person = Ask our shop\nsend = Off it goes"}
        error={errors["widget_settings.texts"] ?? errors[`widget_settings.texts.${language}`]}
      />
    </div>
  );
}
