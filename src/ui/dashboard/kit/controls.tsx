// Buttons and form fields: each with its label, its hint and the server's own error for it.
import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { charsOf, firstChars, unitsOf } from "#ui/characters.ts";
import { isComposing } from "#ui/composing.ts";
import { useMay } from "#ui/dashboard/data/rights.tsx";
import { messageOf } from "#ui/dashboard/data/session.tsx";
import { count } from "./format.ts";
import { Icon, type IconName } from "./icons.tsx";
import { t } from "./texts.ts";

interface ButtonProps {
  kind?: "main" | "plain" | "quiet" | "danger";
  icon?: IconName;
  type?: "button" | "submit";
  disabled?: boolean;
  /** Without this right a main button is disabled and says why; any other is not shown. */
  needs?: string;
  /** While it works: it is disabled, and shows it. */
  isBusy?: boolean;
  /** For a button that shows only an icon: its name. */
  label?: string;
  /** The single key that presses it where its page listens for keys. */
  shortcut?: string;
  onClick?: (event: MouseEvent) => void;
  children?: ComponentChildren;
}

export function Button(props: ButtonProps) {
  const { kind = "plain", icon, type = "button", isBusy = false, disabled = false, label } = props;
  const whyNot = useMay()(props.needs);
  if (whyNot !== null && kind !== "main") return null;
  return (
    <button
      type={type} class={`button ${kind}`} disabled={disabled || isBusy || whyNot !== null}
      aria-busy={isBusy} aria-label={label} title={whyNot ?? label}
      aria-keyshortcuts={props.shortcut} onClick={props.onClick}
    >
      {icon && <Icon name={icon} />}
      {props.children}
    </button>
  );
}

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  /** Only for screen readers: its place says what it is. */
  hidesLabel?: boolean;
  /** The API's name of the field, by which it is found. */
  setting?: string;
}

/** Ties label, hint and error to a control. */
function Field({ label, hint, error, hidesLabel, setting, render }: FieldProps & {
  render: (control: {
    id: string; "data-setting"?: string; "aria-describedby"?: string; "aria-invalid"?: boolean;
  }) => ComponentChildren;
}) {
  const id = useId();
  const noteId = `${id}-note`;
  const note = error || hint;
  return (
    <div class={`field ${error ? "wrong" : ""}`}>
      <label for={id} class={hidesLabel ? "hidden-visually" : undefined}>{label}</label>
      {render({
        id,
        ...(setting ? { "data-setting": setting } : {}),
        ...(note ? { "aria-describedby": noteId } : {}),
        ...(error ? { "aria-invalid": true } : {}),
      })}
      {note && <small id={noteId}>{note}</small>}
    </div>
  );
}

const boundOf = (charsMax: number | undefined) =>
  charsMax === undefined ? {} : { maxLength: unitsOf(charsMax) };

/** The field's text; where it has too many characters, it is cut in the field, too. */
function bounded(field: HTMLInputElement, charsMax: number | undefined): string {
  const text = charsMax === undefined ? field.value : firstChars(field.value, charsMax);
  if (text !== field.value) field.value = text;
  return text;
}

export interface TextFieldProps extends FieldProps {
  value: string;
  onInput(value: string): void;
  type?: "text" | "password" | "search" | "url" | "email" | "tel" | "date" | "time"
    | "datetime-local";
  placeholder?: string;
  required?: boolean;
  maxLength?: number;
  autoComplete?: string;
}

export function TextField(props: TextFieldProps) {
  const { value, onInput, label, hint, error, hidesLabel, setting, maxLength, ...rest } = props;
  return (
    <Field
      label={label} hint={hint} {...(setting ? { setting } : {})}
      {...(error ? { error } : {})} {...(hidesLabel ? { hidesLabel } : {})}
      render={(control) => (
        <input
          dir="auto" {...control} {...rest} {...boundOf(maxLength)} value={value}
          onInput={(event) => onInput(bounded(event.currentTarget, maxLength))}
        />
      )}
    />
  );
}

export function NumberField({ value, onInput, min, max, step, ...field }: FieldProps & {
  value: number | null; onInput(value: number | null): void;
  min?: number; max?: number; step?: number;
}) {
  return (
    <Field
      {...field}
      render={(control) => (
        <input
          {...control} type="number" inputMode="decimal" min={min} max={max} step={step ?? 1}
          value={value ?? ""}
          onInput={({ currentTarget: { value: text, valueAsNumber } }) =>
            onInput(text === "" || Number.isNaN(valueAsNumber) ? null : valueAsNumber)}
        />
      )}
    />
  );
}

/** A text of several lines is not cut, as nobody might notice the missing end; null: it fits. */
export function tooLong(text: string, charsMax: number): string | null {
  if (text.length <= charsMax) return null;
  const chars = charsOf(text);
  return chars <= charsMax ? null : t(
    "This is too long: {count} of at most {max} characters.",
    { count: count(chars), max: count(charsMax) });
}

/** A form's submit handler: calls `send` instead of the browser's own submission. */
export const sends = (send: () => void) => (event: Event): void => {
  event.preventDefault();
  send();
};

/** For a form that Enter submits from a text area; Shift+Enter begins a new line. */
export function sentByEnter(send: () => void): JSX.HTMLAttributes<HTMLFormElement> {
  return {
    onSubmit: sends(send),
    onKeyDown: (event) => {
      if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
      if (!(event.target instanceof HTMLTextAreaElement)) return;
      event.preventDefault();
      send();
    },
  };
}

interface TextAreaProps extends FieldProps {
  value: string;
  onInput(value: string): void;
  rows?: number;
  placeholder?: string;
  maxLength?: number;
}

export function TextArea(props: TextAreaProps) {
  const { value, onInput, rows = 4, placeholder, maxLength = Infinity, ...field } = props;
  const error = tooLong(value, maxLength) ?? field.error;
  return (
    <Field
      {...field} error={error}
      render={(control) => (
        <textarea
          {...control} dir="auto" rows={rows} placeholder={placeholder} value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    />
  );
}

export interface Option {
  value: string;
  label: string;
  /** Shown, and not to be chosen. */
  isDisabled?: boolean;
  /** Can be chosen, and lacks something for most. */
  isGrey?: boolean;
}

export function SelectField({ value, onInput, options, disabled, ...field }: FieldProps & {
  value: string; onInput(value: string): void; options: Option[]; disabled?: boolean;
}) {
  return (
    <Field
      {...field}
      render={(control) => (
        <select
          {...control} value={value} disabled={disabled}
          onChange={(event) => onInput(event.currentTarget.value)}
        >
          {options.map((option) => (
            <option
              key={option.value} value={option.value} disabled={option.isDisabled ?? false}
              class={option.isGrey ? "soft" : undefined}
            >
              {option.label}
            </option>
          ))}
        </select>
      )}
    />
  );
}

export function Toggle(props: FieldProps & {
  value: boolean; disabled?: boolean; onInput(value: boolean): void;
  /** Without this right it is disabled, and says why. */
  needs?: string;
}) {
  const { label, hint, error, setting, value, onInput } = props;
  const id = useId();
  const whyNot = useMay()(props.needs);
  const note = error || hint;
  return (
    <div class="toggle">
      <input
        id={id} type="checkbox" role="switch" checked={value}
        disabled={props.disabled === true || whyNot !== null} title={whyNot ?? undefined}
        data-setting={setting}
        aria-describedby={note ? `${id}-note` : undefined}
        {...(error ? { "aria-invalid": true } : {})}
        onChange={(event) => onInput(event.currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        {note && <small id={`${id}-note`} class={error ? "form-error" : undefined}>{note}</small>}
      </div>
    </div>
  );
}

/** Submits the form; an error is shown above the buttons. */
export function Form(props: {
  onSubmit(): Promise<void>; submit: string;
  error: unknown; onError(error: unknown): void;
  kind?: "main" | "danger";
  onCancel?: (() => void) | undefined; children: ComponentChildren;
  needs?: string;
  /** While something to submit is still being loaded: the form cannot be submitted before. */
  isWaiting?: boolean;
}) {
  const { onSubmit, submit, error, onError, onCancel, needs } = props;
  const { kind = "main", isWaiting = false } = props;
  const { isBusy, run } = useWork(onError);
  return (
    <form onSubmit={sends(() => run(onSubmit))}>
      {props.children}
      {Boolean(error) && <p class="form-error" role="alert">{messageOf(error)}</p>}
      <div class="form-actions">
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        <Button
          kind={kind} type="submit" isBusy={isBusy || isWaiting} {...(needs ? { needs } : {})}
        >{submit}</Button>
      </div>
    </form>
  );
}

/** Runs one piece of work at a time; failures go to `onError`. */
export function useWork(onError: (error: unknown) => void): {
  isBusy: boolean; run(work: () => Promise<unknown>): void;
} {
  const [isBusy, setBusy] = useState(false);
  return {
    isBusy,
    run: (work) => {
      if (isBusy) return;
      setBusy(true);
      void work().catch(onError).finally(() => setBusy(false));
    },
  };
}
