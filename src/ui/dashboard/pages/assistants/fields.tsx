// Form fields that know which setting of the draft they edit.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import {
  NumberField, SelectField, TextArea, TextField, Toggle, type Option, type TextFieldProps,
} from "../../kit/controls.tsx";
import { useDraft, type Field, type Values } from "./draft.ts";
import { idOf, optionsOf } from "./lookups.ts";

interface Bound {
  name: Field;
  label: string;
  hint?: ComponentChildren;
}

/** The setting, as whatever its field takes it for. */
function useSetting<T>(name: Field): {
  value: T | null; error: string | undefined; set(value: T | null): void;
} {
  const { values, errors, set } = useDraft();
  return {
    value: values[name] as T | null,
    error: errors[name],
    set: (value) => set(name, value as Values[Field]),
  };
}

export function Text({ name, ...rest }: Bound & Pick<TextFieldProps, "type" | "placeholder">) {
  const { value, error, set } = useSetting<string>(name);
  return <TextField {...rest} value={value ?? ""} error={error} onInput={set} />;
}

export function LongText({ name, ...rest }: Bound & {
  rows?: number; placeholder?: string; maxLength?: number;
}) {
  const { value, error, set } = useSetting<string>(name);
  return <TextArea {...rest} value={value ?? ""} error={error} onInput={set} />;
}

export function Amount({ name, ...rest }: Bound & { min?: number; max?: number; step?: number }) {
  const { value, error, set } = useSetting<number>(name);
  return <NumberField {...rest} value={value} error={error} onInput={set} />;
}

export function Choice({ name, ...rest }: Bound & { options: Option[] }) {
  const { value, error, set } = useSetting<string>(name);
  return <SelectField {...rest} value={value ?? ""} error={error} onInput={set} />;
}

/** One of the account's or the catalog's rows. */
export function Row({ name, items, none, ...rest }: Bound & {
  items: { id: number; name: string }[] | null;
  /** How having none is called; absent: one must be chosen. */
  none?: string;
}) {
  const { value, error, set } = useSetting<number>(name);
  return (
    <SelectField
      {...rest} options={optionsOf(items, value, none)} value={value === null ? "" : String(value)}
      error={error} onInput={(text) => set(idOf(text))}
    />
  );
}

export function Switch({ name, isDisabled = false, ...rest }: Bound & { isDisabled?: boolean }) {
  const { value, error, set } = useSetting<boolean>(name);
  return (
    <Toggle {...rest} value={value === true} error={error} disabled={isDisabled} onInput={set} />
  );
}

export function Slider({ name, label, hint, min = 0, max = 1, step = 0.05 }: Bound & {
  min?: number; max?: number; step?: number;
}) {
  const id = useId();
  const { value, error, set } = useSetting<number>(name);
  const note = error ?? hint;
  return (
    <div class={`field assistants-slider ${error ? "wrong" : ""}`}>
      <label for={id}>{label} <output for={id}>{(value ?? 0).toFixed(2)}</output></label>
      <input
        id={id} type="range" min={min} max={max} step={step} value={value ?? 0}
        aria-describedby={note ? `${id}-note` : undefined}
        {...(error ? { "aria-invalid": true } : {})}
        onInput={(event) => set(event.currentTarget.valueAsNumber)}
      />
      {note && <small id={`${id}-note`}>{note}</small>}
    </div>
  );
}
