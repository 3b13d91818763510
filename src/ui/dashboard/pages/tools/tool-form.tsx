// The fields of a tool: what it is for, where it goes, what it sends and what the model fills in.
import { Button, NumberField, SelectField, TextArea, TextField } from "../../kit/controls.tsx";
import type { HeaderField, Parameter, ToolFields } from "./tool-fields.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
  .map((value) => ({ value, label: value }));

interface FormProps {
  fields: ToolFields;
  errors: Record<string, string>;
  onChange(fields: ToolFields): void;
}

export function ToolForm({ fields, errors, onChange }: FormProps) {
  const set = (changes: Partial<ToolFields>): void => onChange({ ...fields, ...changes });
  return (
    <div class="tools-form">
      <TextField
        label="Name" value={fields.name} error={errors.name} placeholder="order_status"
        hint="Lowercase letters and underscores; the model calls it by this."
        onInput={(name) => set({ name })}
      />
      <TextArea
        label="Description" rows={2} value={fields.description} error={errors.description}
        hint="Tells the model when to use it." maxLength={255}
        onInput={(description) => set({ description })}
      />
      <div class="tools-address">
        <SelectField
          label="Method" options={METHODS} value={fields.method} error={errors.method}
          onInput={(method) => set({ method: method as ToolFields["method"] })}
        />
        <TextField
          label="Endpoint" type="url" value={fields.endpoint} error={errors.endpoint}
          placeholder="https://" onInput={(endpoint) => set({ endpoint })}
        />
        <NumberField
          label="Timeout (s)" min={1} max={30} value={fields.timeout} error={errors.timeout}
          onInput={(timeout) => set({ timeout })}
        />
      </div>
      <p><small>
        The address may contain <code>{"{parameter}"}</code> and <code>{"{{variable}}"}</code>. Other
        parameters travel in the query of GET and DELETE, and as JSON otherwise.
      </small></p>
      <Headers fields={fields} errors={errors} onChange={onChange} />
      <Parameters fields={fields} errors={errors} onChange={onChange} />
    </div>
  );
}

function Headers({ fields, errors, onChange }: FormProps) {
  const { headers } = fields;
  const replace = (at: number, header: HeaderField | null): void => onChange({
    ...fields,
    headers: headers.flatMap((old, index) => index !== at ? [old] : header ? [header] : []),
  });
  return (
    <fieldset>
      <legend>Headers</legend>
      {errors.headers && <p class="form-error">{errors.headers}</p>}
      {headers.map((header, at) => (
        <div class="tools-row tools-header" role="group" aria-label={`Header ${at + 1}`} key={at}>
          <TextField
            label="Header" value={header.name} error={errors[`headers.${at}.name`]}
            placeholder="Authorization" onInput={(name) => replace(at, { ...header, name })}
          />
          <TextField
            label="Value" type="password" autoComplete="off" value={header.value}
            error={errors[`headers.${at}.value`]}
            placeholder={header.stored === "" ? "Secret" : "Stored; write to replace it"}
            onInput={(value) => replace(at, { ...header, value })}
          />
          <Button
            kind="quiet" icon="close" label={`Remove header ${header.name || at + 1}`}
            onClick={() => replace(at, null)}
          />
        </div>
      ))}
      <Button
        icon="add"
        onClick={() => onChange({
          ...fields, headers: [...headers, { name: "", value: "", stored: "" }],
        })}
      >
        Add header
      </Button>
    </fieldset>
  );
}

const TYPES = ["string", "number", "boolean"].map((value) => ({ value, label: value }));

function Parameters({ fields, errors, onChange }: FormProps) {
  const { schema } = fields;
  const replace = (at: number, parameter: Parameter | null): void => onChange({
    ...fields,
    schema: schema.flatMap((old, index) => index !== at ? [old] : parameter ? [parameter] : []),
  });
  const error = (at: number, member: string): string | undefined =>
    errors[`schema.${at}.${member}`];
  return (
    <fieldset>
      <legend>Parameters</legend>
      <p><small>The model fills in all of them.</small></p>
      {errors.schema && <p class="form-error">{errors.schema}</p>}
      {schema.map((parameter, at) => (
        <div class="tools-row tools-parameter" role="group" aria-label={`Parameter ${at + 1}`} key={at}>
          <TextField
            label="Name" value={parameter.name} error={error(at, "name")}
            placeholder="order_number" onInput={(name) => replace(at, { ...parameter, name })}
          />
          <SelectField
            label="Type" options={TYPES} value={parameter.type} error={error(at, "type")}
            onInput={(type) => replace(at, { ...parameter, type: type as Parameter["type"] })}
          />
          <TextField
            label="Description" value={parameter.description} error={error(at, "description")}
            onInput={(description) => replace(at, { ...parameter, description })}
          />
          <Button
            kind="quiet" icon="close" label={`Remove parameter ${parameter.name || at + 1}`}
            onClick={() => replace(at, null)}
          />
        </div>
      ))}
      <Button
        icon="add"
        onClick={() => onChange({
          ...fields, schema: [...schema, { name: "", type: "string", description: "" }],
        })}
      >
        Add parameter
      </Button>
    </fieldset>
  );
}
