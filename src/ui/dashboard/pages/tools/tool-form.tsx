// The fields of a tool: what it is for, where it goes, what it sends and what the model fills in.
import {
  Button, NumberField, SelectField, TextArea, TextField, Toggle,
} from "#ui/dashboard/kit/controls.tsx";
import {
  EMPTY_PARAMETER, TYPE_NAMES, type HeaderField, type ParameterField, type StaticField,
  type ToolFields,
} from "./tool-fields.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
  .map((value) => ({ value, label: value }));
const FORMATS = [{ value: "json", label: "JSON" }, { value: "form", label: "Form" }];

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
      {fields.mcp && (
        <p>
          It is <code>{fields.mcp.tool}</code> of that MCP server, which defines its parameters
          itself.
        </p>
      )}
      <p><small>
        The address may contain <code>{"{parameter}"}</code> and <code>{"{{variable}}"}</code>. Other
        parameters travel in the query of GET and DELETE, and in the body otherwise.
      </small></p>
      {!fields.mcp && fields.method !== "GET" && fields.method !== "DELETE" && (
        <SelectField
          label="Body" options={FORMATS} value={fields.body_format} error={errors.body_format}
          onInput={(format) => set({ body_format: format as ToolFields["body_format"] })}
        />
      )}
      <Headers fields={fields} errors={errors} onChange={onChange} />
      {!fields.mcp && <Parameters fields={fields} errors={errors} onChange={onChange} />}
      <StaticFields fields={fields} errors={errors} onChange={onChange} />
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
            label="Value" type="password" autoComplete="new-password" value={header.value}
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

const TYPES = TYPE_NAMES.map((value) => ({ value, label: value }));

function Parameters({ fields, errors, onChange }: FormProps) {
  const { schema } = fields;
  const replace = (at: number, parameter: ParameterField | null): void => onChange({
    ...fields,
    schema: schema.flatMap((old, index) => index !== at ? [old] : parameter ? [parameter] : []),
  });
  return (
    <fieldset>
      <legend>Parameters</legend>
      <p><small>The model fills them in.</small></p>
      {errors.schema && <p class="form-error">{errors.schema}</p>}
      {schema.map((parameter, at) => (
        <ParameterRow
          key={at} number={at + 1} parameter={parameter}
          error={(member) => errors[`schema.${at}.${member}`]}
          onChange={(next) => replace(at, next)}
        />
      ))}
      <Button
        icon="add" onClick={() => onChange({ ...fields, schema: [...schema, EMPTY_PARAMETER] })}
      >
        Add parameter
      </Button>
    </fieldset>
  );
}

function ParameterRow({ number, parameter, error, onChange }: {
  number: number; parameter: ParameterField;
  error(member: string): string | undefined; onChange(parameter: ParameterField | null): void;
}) {
  const set = (changes: Partial<ParameterField>): void => onChange({ ...parameter, ...changes });
  return (
    <div class="tools-row tools-parameter" role="group" aria-label={`Parameter ${number}`}>
      <TextField
        label="Name" value={parameter.name} error={error("name")}
        placeholder="order_number" onInput={(name) => set({ name })}
      />
      <SelectField
        label="Type" options={TYPES} value={parameter.type} error={error("type")}
        onInput={(type) => set({ type: type as ParameterField["type"] })}
      />
      <TextField
        label="Description" value={parameter.description} error={error("description")}
        onInput={(description) => set({ description })}
      />
      <Button
        kind="quiet" icon="close" label={`Remove parameter ${parameter.name || number}`}
        onClick={() => onChange(null)}
      />
      <div class="tools-more">
        <Toggle
          label="Required" value={parameter.isRequired} error={error("required")}
          onInput={(isRequired) => set({ isRequired })}
        />
        <TextField
          label="Choices" value={parameter.choices} error={error("enum")}
          placeholder="Any; or a, b, c" onInput={(choices) => set({ choices })}
        />
      </div>
    </div>
  );
}

function StaticFields({ fields, errors, onChange }: FormProps) {
  const { static_fields: list } = fields;
  const replace = (at: number, field: StaticField | null): void => onChange({
    ...fields,
    static_fields: list.flatMap((old, index) => index !== at ? [old] : field ? [field] : []),
  });
  return (
    <fieldset>
      <legend>Fixed fields</legend>
      <p><small>
        Sent with every call in addition to the parameters; may
        contain <code>{"{{variable}}"}</code>.
      </small></p>
      {errors.static_fields && <p class="form-error">{errors.static_fields}</p>}
      {list.map((field, at) => (
        <div class="tools-row tools-header" role="group" aria-label={`Fixed field ${at + 1}`} key={at}>
          <TextField
            label="Field" value={field.key} error={errors[`static_fields.${at}.key`]}
            onInput={(key) => replace(at, { ...field, key })}
          />
          <TextField
            label="Value" value={field.value} error={errors[`static_fields.${at}.value`]}
            onInput={(value) => replace(at, { ...field, value })}
          />
          <Button
            kind="quiet" icon="close" label={`Remove fixed field ${field.key || at + 1}`}
            onClick={() => replace(at, null)}
          />
        </div>
      ))}
      <Button
        icon="add"
        onClick={() => onChange({ ...fields, static_fields: [...list, { key: "", value: "" }] })}
      >
        Add fixed field
      </Button>
    </fieldset>
  );
}
