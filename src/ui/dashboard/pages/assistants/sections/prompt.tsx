// Section: what the assistant says first, its instructions, and the variables in both.
import { useRef } from "preact/hooks";
import { Button, TextField } from "#ui/dashboard/kit/controls.tsx";
import { useDraft } from "#ui/dashboard/pages/assistants/draft.ts";
import { LongText } from "#ui/dashboard/pages/assistants/fields.tsx";
import { labelOf } from "#ui/dashboard/pages/assistants/labels.ts";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";
import { SYSTEM_VARIABLES, variablesIn } from "#ui/dashboard/pages/assistants/variables.ts";

function Summary() {
  const { initial_message, system_prompt } = useDraft().values;
  return <>{initial_message || system_prompt}</>;
}

function Body() {
  const { values } = useDraft();
  const last = useRef<HTMLTextAreaElement | null>(null);
  const names = [...Object.keys(values.variables ?? {}), ...SYSTEM_VARIABLES];
  // As if it were typed at the cursor.
  const insert = (name: string): void => {
    const area = last.current ?? document.querySelector<HTMLTextAreaElement>(".assistants-prompt textarea");
    if (!area) return;
    area.focus();
    area.setRangeText(`{{${name}}}`, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  return (
    <>
      <div
        class="stack"
        onFocusIn={({ target }) => {
          if (target instanceof HTMLTextAreaElement) last.current = target;
        }}
      >
        <LongText
          name="initial_message" rows={2} maxLength={200}
          hint={`What it says first; empty: it waits. ${(values.initial_message ?? "").length} of 200 characters.`}
        />
        <div class="assistants-prompt">
          <LongText
            name="system_prompt" rows={14}
          />
        </div>
      </div>
      <div class="assistants-chips" role="group" aria-label="Insert a variable">
        <small>Insert</small>
        {names.map((name) => (
          <button key={name} type="button" class="assistants-chip" onClick={() => insert(name)}>
            {name}
          </button>
        ))}
      </div>
      <Variables />
    </>
  );
}

/** Rows are kept in their order while names are being typed. */
function Variables() {
  const { values, errors, set } = useDraft();
  const variables = values.variables ?? {};
  const rows = Object.entries(variables);
  const missing = variablesIn(values.initial_message, values.system_prompt)
    .filter((name) => !Object.hasOwn(variables, name));
  const replace = (at: number, row: [string, string] | null): void => {
    const next = rows.flatMap((old, index) => index !== at ? [old] : row ? [row] : []);
    set("variables", Object.fromEntries(next));
  };
  const add = (name: string): void => set("variables", { ...variables, [name]: "" });
  const fresh = (): string => {
    let at = rows.length + 1;
    while (Object.hasOwn(variables, `variable_${at}`)) at += 1;
    return `variable_${at}`;
  };
  const wrong = errors.variables
    ?? Object.entries(errors).find(([name]) => name.startsWith("variables."))?.[1];
  return (
    <fieldset class="assistants-variables">
      <legend>{labelOf("variables")}</legend>
      <small>Calls, leads, conversations and the inbound webhook may give other values.</small>
      {rows.map(([name, value], at) => (
        <div class="assistants-pair" key={at}>
          <TextField
            label="Name" hidesLabel={at > 0} value={name} error={at === 0 ? wrong : undefined}
            onInput={(next) => {
              if (!Object.hasOwn(variables, next)) replace(at, [next, value]);
            }}
          />
          <TextField
            label="Default" hidesLabel={at > 0} value={value}
            onInput={(next) => replace(at, [name, next])}
          />
          <Button
            kind="quiet" icon="close" label={`Remove ${name}`} onClick={() => replace(at, null)}
          />
        </div>
      ))}
      <div class="assistants-chips">
        <Button icon="add" onClick={() => add(fresh())}>Add variable</Button>
      </div>
      {missing.length > 0 && (
        <div class="assistants-chips" role="group" aria-label="Used above without a default">
          <small>Used above without a default</small>
          {missing.map((name) => (
            <button
              key={name} type="button" class="assistants-chip" aria-label={`Add ${name}`}
              onClick={() => add(name)}
            >
              + {name}
            </button>
          ))}
        </div>
      )}
    </fieldset>
  );
}

export const PROMPT: SectionSpec = {
  id: "prompt", title: "Prompt and greeting", Summary, Body,
  fields: ["initial_message", "system_prompt", "variables"],
};
