// Section: the assistant's name, type, number and time zone, and its folder and labels.
import { TYPES } from "#ui/dashboard/pages/assistants/create.tsx";
import { Choice, Row, Text } from "#ui/dashboard/pages/assistants/fields.tsx";
import { useDraft } from "#ui/dashboard/pages/assistants/draft.ts";
import { labelOf } from "#ui/dashboard/pages/assistants/labels.ts";
import { useFolders, useLabels, useNumbers } from "#ui/dashboard/pages/assistants/lookups.ts";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";
import { words } from "#ui/dashboard/kit/format.ts";
import { t } from "#ui/dashboard/kit/texts.ts";
import { zoneOptions } from "#ui/dashboard/kit/zone.ts";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";

function Summary() {
  const { type, timezone } = useDraft().values;
  return <>{words(type ?? "")}, {timezone}</>;
}

function Body() {
  const { values, record } = useDraft();
  const numbers = useNumbers().value;
  const folders = useFolders().value;
  const usable = numbers?.filter(({ id, is_available }) =>
    values.type === "outbound" || is_available || id === record.phone_number_id) ?? null;
  return (
    <>
      <div class="form-row">
        <Text name="name" />
        <Choice name="type" options={TYPES} />
      </div>
      <div class="form-row">
        <Choice
          name="timezone" options={zoneOptions(values.timezone ?? "")}
        />
        <Row
          name="phone_number_id" none="None"
          items={usable?.map(({ id, phone_number, type_label }) =>
            ({ id, name: `${formatPhone(phone_number)} (${t(type_label)})` })) ?? null}
        />
        <Row name="folder_id" none="None" items={folders} />
      </div>
      <Labels />
    </>
  );
}

function Labels() {
  const { values, set } = useDraft();
  const labels = useLabels().value ?? [];
  const chosen = values.label_ids ?? [];
  if (labels.length === 0) return null;
  return (
    <fieldset>
      <legend>{labelOf("label_ids")}</legend>
      <div class="assistants-chips">
        {labels.map(({ id, name }) => (
          <label key={id} class="assistants-check">
            <input
              type="checkbox" checked={chosen.includes(id)}
              onChange={(event) => set("label_ids", event.currentTarget.checked
                ? [...chosen, id]
                : chosen.filter((other) => other !== id))}
            />
            {name}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export const BASICS: SectionSpec = {
  id: "basics", title: "Basics", Summary, Body,
  fields: ["name", "type", "timezone", "phone_number_id", "folder_id", "label_ids", "status"],
};
