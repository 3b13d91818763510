// Form fields that know which setting of the draft they edit.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import {
  NumberField, SelectField, TextArea, TextField, Toggle, type Option, type TextFieldProps,
} from "#ui/dashboard/kit/controls.tsx";
import { useDraft, type Field, type Values } from "./draft.ts";
import { about } from "./labels.ts";
import { idOf, optionsOf } from "./lookups.ts";
import { decimal } from "#ui/dashboard/kit/format.ts";

interface Bound {
  name: Field;
}

/** Replaces the texts of labels.ts. */
interface Given {
  label?: string | undefined;
  hint?: ComponentChildren;
}

/** A setting as the type its field needs; `told`: its label, hint and error. */
function useSetting<T>(name: Field, given: Given = {}): {
  value: T | null; set(value: T | null): void;
  told: { setting: string; label: string; hint: ComponentChildren; error: string | undefined };
} {
  const { values, errors, warnings, set } = useDraft();
  const { setting, label, hint } = about(name);
  const warning = warnings[name];
  return {
    value: values[name] as T | null,
    set: (value) => set(name, value as Values[Field]),
    told: {
      setting, label: given.label ?? label, error: errors[name],
      hint: warning === undefined
        ? given.hint ?? hint
        : <span class="assistants-warning">{warning}</span>,
    },
  };
}

export function Text(
  { name, label, hint, ...rest }: Bound & Given & Pick<TextFieldProps, "type" | "placeholder">,
) {
  const { value, told, set } = useSetting<string>(name, { label, hint });
  return <TextField {...rest} {...told} value={value ?? ""} onInput={set} />;
}

export function LongText({ name, hint, ...rest }: Bound & Pick<Given, "hint"> & {
  rows?: number; placeholder?: string; maxLength?: number;
}) {
  const { value, told, set } = useSetting<string>(name, { hint });
  return <TextArea {...rest} {...told} value={value ?? ""} onInput={set} />;
}

export function Amount({ name, ...rest }: Bound & { min?: number; max?: number; step?: number }) {
  const { value, told, set } = useSetting<number>(name);
  return <NumberField {...rest} {...told} value={value} onInput={set} />;
}

export function Choice({ name, ...rest }: Bound & { options: Option[] }) {
  const { value, told, set } = useSetting<string>(name);
  return <SelectField {...rest} {...told} value={value ?? ""} onInput={set} />;
}

/** Chooses one of the account's or a catalog's rows. */
export function Row({ name, items, none }: Bound & {
  items: { id: number; name: string }[] | null;
  /** The label for none; absent: one must be chosen. */
  none?: string;
}) {
  const { value, told, set } = useSetting<number>(name);
  return (
    <SelectField
      {...told} options={optionsOf(items, value, none)}
      value={value === null ? "" : String(value)} onInput={(text) => set(idOf(text))}
    />
  );
}

export function Switch({ name, hint }: Bound & Pick<Given, "hint">) {
  const { value, told, set } = useSetting<boolean>(name, { hint });
  return <Toggle {...told} value={value === true} onInput={set} />;
}

export function Slider({ name, min = 0, max = 1 }: Bound & { min?: number; max?: number }) {
  const id = useId();
  const { value, told: { label, hint, error, setting }, set } = useSetting<number>(name);
  const note = error ?? hint;
  return (
    <div class={`field assistants-slider ${error ? "wrong" : ""}`}>
      <label for={id}>{label} <output for={id}>{decimal(value ?? 0, 2)}</output></label>
      <input
        id={id} type="range" min={min} max={max} step={0.05} value={value ?? 0}
        data-setting={setting} aria-describedby={note ? `${id}-note` : undefined}
        {...(error ? { "aria-invalid": true } : {})}
        onInput={(event) => set(event.currentTarget.valueAsNumber)}
      />
      {note && <small id={`${id}-note`}>{note}</small>}
    </div>
  );
}
