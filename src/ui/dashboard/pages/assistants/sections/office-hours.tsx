// When people are available to answer an assistant's visitors: the hours of each weekday on one
// line, holidays, and what is said outside these hours.
import { useState } from "preact/hooks";
import { SelectField, TextArea, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { words } from "#ui/dashboard/kit/format.ts";
import { zoneOptions } from "#ui/dashboard/kit/zone.ts";
import type { Values } from "#ui/dashboard/pages/assistants/draft.ts";
import { about } from "#ui/dashboard/pages/assistants/labels.ts";
import { Lines } from "#ui/dashboard/pages/assistants/lines.tsx";
import { WEEKDAYS, type Weekday } from "#core/days.ts";

type Office = NonNullable<NonNullable<Values["desk"]>["office_hours"]>;
type Periods = NonNullable<Office["hours"]["monday"]>;

const WEEK: Office["hours"] = Object.fromEntries(
  WEEKDAYS.slice(0, 5).map((day) => [day, [{ from: "09:00", to: "17:00" }]]));
const ASSISTANTS = { value: "", label: "The assistant’s" };
const MESSAGE_CHARS_MAX = 500;

const spelt = (periods: Periods | undefined): string =>
  (periods ?? []).map(({ from, to }) => `${from}-${to}`).join(", ");
/** The server refuses what is not a time. */
const periodsOf = (text: string): Periods => text.split(",").map((part) => part.trim())
  .filter((part) => part !== "").map((part) => {
    const [from = "", to = ""] = part.split("-").map((time) => time.trim());
    return { from, to };
  });

export function OfficeHours({ value, errors, onInput }: {
  value: Office | null; errors: Record<string, string>;
  onInput(value: Office | null): void;
}) {
  const name = "desk.office_hours";
  const errorOf = (part: string): string | undefined => Object.entries(errors)
    .find(([field]) => field.startsWith(`${name}.${part}`))?.[1];
  return (
    <>
      <Toggle
        {...about(name)} value={value !== null}
        onInput={(on) => onInput(on ? { hours: WEEK } : null)}
      />
      {value && (
        <>
          <SelectField
            label="Time zone" value={value.time_zone ?? ""} error={errorOf("time_zone")}
            options={[ASSISTANTS, ...zoneOptions(value.time_zone ?? "")]}
            onInput={(zone) => onInput({ ...value, time_zone: zone === "" ? null : zone })}
          />
          {WEEKDAYS.map((day) => (
            <Hours
              key={day} day={day} periods={value.hours[day]} error={errorOf(`hours.${day}`)}
              onInput={(periods) => onInput({
                ...value, hours: { ...value.hours, [day]: periods },
              })}
            />
          ))}
          <Lines
            label="Holidays" setting={`${name}.holidays`} errors={errors} placeholder="2026-12-25"
            value={value.holidays ?? []} onInput={(holidays) => onInput({ ...value, holidays })}
          />
          <TextArea
            label="What visitors see outside these hours" value={value.message ?? ""} rows={2}
            maxLength={MESSAGE_CHARS_MAX}
            onInput={(message) => onInput({ ...value, message })}
          />
          <Toggle
            label="Visitors can then leave contact details" value={value.callback ?? false}
            onInput={(callback) => onInput({ ...value, callback })}
          />
        </>
      )}
    </>
  );
}

function Hours({ day, periods, error, onInput }: {
  day: Weekday; periods: Periods | undefined; error: string | undefined;
  onInput(periods: Periods): void;
}) {
  // A half-typed period stays while people type.
  const [text, setText] = useState(spelt(periods));
  const isSame = spelt(periodsOf(text)) === spelt(periods);
  return (
    <TextField
      label={words(day)} error={error}
      value={isSame ? text : spelt(periods)}
      placeholder="closed; 09:00-12:00, 13:00-17:00"
      onInput={(next) => {
        setText(next);
        onInput(periodsOf(next));
      }}
    />
  );
}
