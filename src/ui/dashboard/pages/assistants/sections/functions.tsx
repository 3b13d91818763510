// Section: what the assistant can do besides talking: built-in functions and the account's tools.
import { useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { byName } from "#ui/dashboard/kit/by-name.ts";
import {
  Button, NumberField, SelectField, TextArea, TextField, Toggle,
} from "#ui/dashboard/kit/controls.tsx";
import { Loaded } from "#ui/dashboard/kit/layout.tsx";
import { useDraft, type BuiltIn } from "#ui/dashboard/pages/assistants/draft.ts";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { idOf, optionsOf, useNumbers } from "#ui/dashboard/pages/assistants/lookups.ts";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";
import { BookingFields, type BookingField } from "./booking-fields.tsx";
import { BUILT_INS, type BuiltInSpec, type Member } from "./built-ins.ts";
import { plural } from "#ui/dashboard/kit/texts.ts";

function Summary() {
  const { tools, tool_ids } = useDraft().values;
  const names = tools.map(({ type }) =>
    BUILT_INS.find((spec) => spec.type === type)?.label ?? type);
  const count = tool_ids?.length ?? 0;
  const own = count === 0 ? [] : [plural(count, "{count} tool", "{count} tools")];
  return <>{[...names, ...own].join(", ") || "None"}</>;
}

function Body() {
  const { values, set } = useDraft();
  const [next, setNext] = useState(BUILT_INS[0]?.type ?? "");
  const { tools } = values;
  const replace = (at: number, tool: BuiltIn | null): void =>
    set("tools", tools.flatMap((old, index) => index !== at ? [old] : tool ? [tool] : []));
  return (
    <>
      <fieldset>
        <legend>Built-in functions</legend>
        {tools.length === 0 && <p><small>None yet.</small></p>}
        {tools.map((tool, at) => (
          <Function key={`${at} ${tool.type}`} tool={tool} at={at} onChange={(to) => replace(at, to)} />
        ))}
        <div class="assistants-add">
          <SelectField
            label="Add a function" value={next} onInput={setNext}
            options={BUILT_INS.map(({ type, label }) => ({ value: type, label }))}
          />
          <Button
            icon="add"
            onClick={() => set("tools", [
              ...tools, { type: next, ...BUILT_INS.find(({ type }) => type === next)?.start },
            ])}
          >
            Add
          </Button>
        </div>
      </fieldset>
      <OwnTools />
    </>
  );
}

function Function({ tool, at, onChange }: {
  tool: BuiltIn; at: number; onChange(tool: BuiltIn | null): void;
}) {
  const { errors } = useDraft();
  const spec: BuiltInSpec = BUILT_INS.find(({ type }) => type === tool.type)
    ?? { type: tool.type, label: tool.type, what: "", start: {}, members: [] };
  const own = errors[`tools.${at}`];
  return (
    <div class="assistants-function" role="group" aria-label={spec.label}>
      <div class="assistants-function-head">
        <div><strong>{spec.label}</strong> <small>{spec.what}</small></div>
        <Button
          kind="quiet" icon="close" label={`Remove ${spec.label}`} onClick={() => onChange(null)}
        />
      </div>
      {own && <p class="form-error">{own}</p>}
      <div class="form-row">
        {spec.members.map((member) => (
          <MemberField
            key={member.name} member={member} value={tool[member.name]}
            name={`tools.${at}.${member.name}`}
            error={errors[`tools.${at}.${member.name}`]}
            onInput={(value) => onChange({ ...tool, [member.name]: value })}
          />
        ))}
      </div>
    </div>
  );
}

function MemberField({ member, value, name, error, onInput }: {
  member: Member; value: unknown; error: string | undefined; onInput(value: unknown): void;
  /** The server's name for it in errors. */
  name: string;
}) {
  const { label, hint } = member;
  const field = { setting: name, label, error, ...(hint ? { hint } : {}) };
  const text = typeof value === "string" ? value : "";
  switch (member.kind) {
    case "text":
      return <TextField {...field} value={text} onInput={onInput} />;
    case "secret":
      return (
        <TextField
          {...field} type="password" autoComplete="new-password" value={text} onInput={onInput}
        />
      );
    case "area":
      return <TextArea {...field} rows={2} value={text} onInput={onInput} />;
    case "flag":
      return <Toggle {...field} value={value === true} onInput={onInput} />;
    case "number":
      return (
        <NumberField
          {...field} min={member.min} max={member.max} onInput={onInput}
          value={typeof value === "number" ? value : null}
        />
      );
    case "choice":
      return (
        <SelectField {...field} options={member.options} value={text} onInput={onInput} />
      );
    case "assistant":
      return <AssistantField {...field} value={value} onInput={onInput} />;
    case "phone":
      return <PhoneField {...field} value={value} onInput={onInput} />;
    case "booking":
      return (
        <BookingFields
          label={label} name={name} fields={(value ?? []) as BookingField[]} onInput={onInput}
        />
      );
  }
}

interface RowField {
  setting: string;
  label: string;
  error: string | undefined;
  value: unknown;
  onInput(value: number | null): void;
}

function AssistantField({ value, onInput, ...field }: RowField) {
  const { record } = useDraft();
  const all = useAssistants().value;
  const others = all && byName(all).filter(({ id }) => id !== record.id);
  const chosen = typeof value === "number" ? value : null;
  return (
    <SelectField
      {...field} options={optionsOf(others, chosen, "Choose…")} value={String(chosen ?? "")}
      onInput={(text) => onInput(idOf(text))}
    />
  );
}

function PhoneField({ value, onInput, ...field }: RowField) {
  const numbers = useNumbers().value?.map(({ id, phone_number }) => ({ id, name: phone_number }));
  const chosen = typeof value === "number" ? value : null;
  return (
    <SelectField
      {...field} options={optionsOf(numbers ?? null, chosen, "Choose…")}
      value={String(chosen ?? "")} onInput={(text) => onInput(idOf(text))}
    />
  );
}

function OwnTools() {
  const api = useApi();
  const { values, set } = useDraft();
  const tools = useData("tools", () => unwrap(api.GET("/user/tools")));
  const chosen = values.tool_ids ?? [];
  return (
    <fieldset>
      <legend>Your tools</legend>
      <Loaded data={tools}>
        {(list) => (
          <>
            {list.length === 0 && <p><small>None yet. A tool calls an address of yours.</small></p>}
            {byName(list).map(({ id, name, description }) => (
              <Toggle
                key={id} label={name} hint={description} value={chosen.includes(id)}
                onInput={(isOn) => set(
                  "tool_ids", isOn ? [...chosen, id] : chosen.filter((other) => other !== id))}
              />
            ))}
            <p><a href="#/tools">Tools</a></p>
          </>
        )}
      </Loaded>
    </fieldset>
  );
}

export const FUNCTIONS: SectionSpec = {
  id: "functions", title: "Functions", Summary, Body, fields: ["tools", "tool_ids"],
};
