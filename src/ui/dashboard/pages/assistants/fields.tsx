// Form fields that know which setting of the draft they edit.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import {
  NumberField, SelectField, TextArea, TextField, Toggle, type Option, type TextFieldProps,
} from "#ui/dashboard/kit/controls.tsx";
import { useDraft, type Field, type Values } from "./draft.ts";
import { idOf, optionsOf } from "./lookups.ts";

interface Bound {
  name: Field;
  label: string;
  hint?: ComponentChildren;
}

/** The setting, as whatever its field takes it for. */
function useSetting<T>(name: Field, hint?: ComponentChildren): {
  value: T | null; error: string | undefined; hint: ComponentChildren; set(value: T | null): void;
} {
  const { values, errors, warnings, set } = useDraft();
  const warning = warnings[name];
  return {
    value: values[name] as T | null,
    error: errors[name],
    hint: warning === undefined ? hint : <span class="assistants-warning">{warning}</span>,
    set: (value) => set(name, value as Values[Field]),
  };
}

export function Text({ name, hint: given, ...rest }: Bound & Pick<TextFieldProps, "type" | "placeholder">) {
  const { value, error, hint, set } = useSetting<string>(name, given);
  return <TextField {...rest} hint={hint} value={value ?? ""} error={error} onInput={set} />;
}

export function LongText({ name, hint: given, ...rest }: Bound & {
  rows?: number; placeholder?: string; maxLength?: number;
}) {
  const { value, error, hint, set } = useSetting<string>(name, given);
  return <TextArea {...rest} hint={hint} value={value ?? ""} error={error} onInput={set} />;
}

export function Amount({ name, hint: given, ...rest }: Bound & {
  min?: number; max?: number; step?: number;
}) {
  const { value, error, hint, set } = useSetting<number>(name, given);
  return <NumberField {...rest} hint={hint} value={value} error={error} onInput={set} />;
}

export function Choice({ name, hint: given, ...rest }: Bound & { options: Option[] }) {
  const { value, error, hint, set } = useSetting<string>(name, given);
  return <SelectField {...rest} hint={hint} value={value ?? ""} error={error} onInput={set} />;
}

/** One of the account's or the catalog's rows. */
export function Row({ name, items, none, hint: given, ...rest }: Bound & {
  items: { id: number; name: string }[] | null;
  /** How having none is called; absent: one must be chosen. */
  none?: string;
}) {
  const { value, error, hint, set } = useSetting<number>(name, given);
  return (
    <SelectField
      {...rest} hint={hint} options={optionsOf(items, value, none)}
      value={value === null ? "" : String(value)} error={error} onInput={(text) => set(idOf(text))}
    />
  );
}

export function Switch({ name, isDisabled = false, hint: given, ...rest }: Bound & {
  isDisabled?: boolean;
}) {
  const { value, error, hint, set } = useSetting<boolean>(name, given);
  return (
    <Toggle
      {...rest} hint={hint} value={value === true} error={error} disabled={isDisabled}
      onInput={set}
    />
  );
}

export function Slider({ name, label, hint: given, min = 0, max = 1, step = 0.05 }: Bound & {
  min?: number; max?: number; step?: number;
}) {
  const id = useId();
  const { value, error, hint, set } = useSetting<number>(name, given);
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
