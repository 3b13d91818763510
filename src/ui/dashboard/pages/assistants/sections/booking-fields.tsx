// The questions of a Cal.com event that a booking must answer beside the standard ones. People copy
// them here from the event's page at Cal.com.
import { Button, SelectField, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { words } from "#ui/dashboard/kit/format.ts";
import { useDraft } from "#ui/dashboard/pages/assistants/draft.ts";
import { Lines } from "#ui/dashboard/pages/assistants/lines.tsx";

export interface BookingField {
  slug: string;
  type: string;
  label: string;
  required?: boolean;
  options?: string[] | null;
}

/** Cal.com's own names of them. */
const TYPES = [
  "text", "textarea", "number", "boolean", "select", "multiselect", "radio", "checkbox", "phone",
  "email", "multiemail", "url", "address",
];
const CHOSEN: ReadonlySet<string> = new Set(["select", "multiselect", "radio", "checkbox"]);

/** `name`: the server's name for the list in errors. */
export function BookingFields({ label, name, fields, onInput }: {
  label: string; name: string; fields: BookingField[]; onInput(fields: BookingField[]): void;
}) {
  return (
    <fieldset class="assistants-questions">
      <legend>{label}</legend>
      {fields.map((field, at) => (
        <Question
          key={at} field={field} at={at} name={`${name}.${at}`}
          onChange={(changes) => onInput(fields.map((old, index) =>
            index === at ? { ...old, ...changes } : old))}
          onRemove={() => onInput(fields.filter((_, index) => index !== at))}
        />
      ))}
      <p>
        <Button
          icon="add"
          onClick={() => onInput([...fields, { slug: "", type: "text", label: "", required: false }])}
        >
          Add question
        </Button>
      </p>
    </fieldset>
  );
}

function Question({ field, at, name, onChange, onRemove }: {
  field: BookingField; at: number; name: string;
  onChange(changes: Partial<BookingField>): void; onRemove(): void;
}) {
  const { errors } = useDraft();
  const error = (member: string): string | undefined => errors[`${name}.${member}`];
  const { slug, type, label, required = false, options } = field;
  const types = TYPES.includes(type) ? TYPES : [type, ...TYPES];
  return (
    <div class="assistants-function" role="group" aria-label={`Question ${at + 1}`}>
      <div class="form-row">
        <TextField
          label="Name at Cal.com" value={slug} error={error("slug")} hint="The question’s identifier."
          onInput={(text) => onChange({ slug: text })}
        />
        <TextField
          label="What to ask for" value={label} error={error("label")}
          onInput={(text) => onChange({ label: text })}
        />
        <SelectField
          label="Type" value={type} error={error("type")}
          options={types.map((value) => ({ value, label: words(value) }))}
          onInput={(text) => onChange({ type: text })}
        />
        {(CHOSEN.has(type) || (options ?? []).length > 0) && (
          <Lines
            label="Choices" setting={`${name}.options`} errors={errors} value={options ?? []}
            onInput={(choices) => onChange({ options: choices })}
          />
        )}
        <Toggle
          label="Required for bookings" value={required} error={error("required")}
          onInput={(isOn) => onChange({ required: isOn })}
        />
      </div>
      <Button
        kind="quiet" icon="close" label={`Remove question ${slug || at + 1}`} onClick={onRemove}
      />
    </div>
  );
}
