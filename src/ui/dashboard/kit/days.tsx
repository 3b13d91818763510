// Two days that filter a list, both inclusive, in the time zone that is shown.
import { TextField } from "./controls.tsx";
import { shownZone } from "./zone.ts";

interface Days {
  /** `YYYY-MM-DD`; empty: no bound. */
  from: string;
  to: string;
}

export const daysQuery = ({ from, to }: Days) => ({
  ...(from ? { date_from: from } : {}),
  ...(to ? { date_to: to } : {}),
  ...(from || to ? { timezone: shownZone() } : {}),
});

/** With a clock time, where an hour of a chart links here. */
const typeOf = (text: string) => text.includes("T") ? "datetime-local" : "date";

export function DayFields({ days, change }: { days: Days; change(part: Partial<Days>): void }) {
  return (
    <>
      <TextField
        label="From day" type={typeOf(days.from)} value={days.from} onInput={(from) => change({ from })}
      />
      <TextField
        label="To day" type={typeOf(days.to)} value={days.to} onInput={(to) => change({ to })}
      />
    </>
  );
}
