// Section: what is extracted from a call when it is over.
import { Button, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { useDraft, type Values } from "#ui/dashboard/pages/assistants/draft.ts";
import { Switch } from "#ui/dashboard/pages/assistants/fields.tsx";
import { labelOf } from "#ui/dashboard/pages/assistants/labels.ts";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";

type Item = NonNullable<Values["post_call_schema"]>[number];

function Summary() {
  const { post_call_evaluation, post_call_schema } = useDraft().values;
  const names = (post_call_schema ?? []).map(({ name }) => name).join(", ");
  return <>{post_call_evaluation === true ? names || "No fields" : "Off"}</>;
}

const TYPES = [
  { value: "string", label: "Text" }, { value: "number", label: "Number" },
  { value: "bool", label: "Yes or no" },
];

function Body() {
  const { values, set } = useDraft();
  const items = values.post_call_schema ?? [];
  const change = (at: number, changes: Partial<Item>): void =>
    set("post_call_schema", items.map((item, index) =>
      index === at ? { ...item, ...changes } : item));
  return (
    <>
      <Switch
        name="post_call_evaluation"
      />
      <fieldset disabled={values.post_call_evaluation !== true}>
        <legend>Fields</legend>
        {items.map((item, at) => (
          <EvaluationField
            key={at} item={item} at={at} onChange={(changes) => change(at, changes)}
            onRemove={() => set("post_call_schema", items.filter((_, index) => index !== at))}
          />
        ))}
        <p>
          <Button
            icon="add"
            onClick={() => set("post_call_schema", [
              ...items, { name: "", type: "string", description: "" },
            ])}
          >
            Add field
          </Button>
        </p>
      </fieldset>
    </>
  );
}

function EvaluationField({ item, at, onChange, onRemove }: {
  item: Item; at: number; onChange(changes: Partial<Item>): void; onRemove(): void;
}) {
  const { errors } = useDraft();
  const error = (member: string): string | undefined => errors[`post_call_schema.${at}.${member}`];
  const hidesLabel = at > 0;
  return (
    <div class="assistants-item" role="group" aria-label={`Field ${at + 1}`}>
      <TextField
        label={labelOf("post_call_schema.name")} hidesLabel={hidesLabel} value={item.name}
        setting={`post_call_schema.${at}.name`} error={error("name")}
        onInput={(name) => onChange({ name })}
      />
      <SelectField
        label="Type" hidesLabel={hidesLabel} value={item.type} options={TYPES}
        error={error("type")} onInput={(type) => onChange({ type: type as Item["type"] })}
      />
      <TextField
        label={labelOf("post_call_schema.description")} hidesLabel={hidesLabel} value={item.description}
        error={error("description")} onInput={(description) => onChange({ description })}
      />
      <Button
        kind="quiet" icon="close" label={`Remove field ${item.name || at + 1}`} onClick={onRemove}
      />
    </div>
  );
}

export const EVALUATION: SectionSpec = {
  id: "evaluation", title: "Post-call evaluation", Summary, Body,
  fields: ["post_call_evaluation", "post_call_schema"],
};
