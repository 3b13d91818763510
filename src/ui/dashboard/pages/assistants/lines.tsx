// A list of short texts, written one to a line.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { TextArea } from "#ui/dashboard/kit/controls.tsx";

const linesOf = (text: string): string[] =>
  text.split("\n").map((line) => line.trim()).filter((line) => line !== "");

export function Lines({ label, hint, setting, errors, value, onInput, placeholder }: {
  label: string;
  hint?: ComponentChildren;
  /** The server's name for it in errors. */
  setting: string;
  errors: Record<string, string>;
  value: string[];
  placeholder?: string;
  onInput(value: string[]): void;
}) {
  // Blank lines stay while people type.
  const [text, setText] = useState(value.join("\n"));
  const isSame = JSON.stringify(linesOf(text)) === JSON.stringify(value);
  const wrong = Object.entries(errors).find(([field]) =>
    field === setting || field.startsWith(`${setting}.`))?.[1];
  return (
    <TextArea
      label={label} setting={setting} hint={hint ?? "One per line."} error={wrong} rows={3}
      value={isSame ? text : value.join("\n")}
      {...(placeholder ? { placeholder } : {})}
      onInput={(next) => {
        setText(next);
        onInput(linesOf(next));
      }}
    />
  );
}
