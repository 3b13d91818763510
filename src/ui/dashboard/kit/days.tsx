// Two days that narrow a list, both included, in UTC as the API counts them.
import { TextField } from "./controls.tsx";

interface Days {
  /** `YYYY-MM-DD`; empty: not narrowed. */
  from: string;
  to: string;
}

export const daysQuery = ({ from, to }: Days) => ({
  ...(from ? { date_from: from } : {}),
  ...(to ? { date_to: to } : {}),
});

export function DayFields({ days, change }: { days: Days; change(part: Partial<Days>): void }) {
  return (
    <>
      <TextField
        label="From day (UTC)" type="date" value={days.from} onInput={(from) => change({ from })}
      />
      <TextField
        label="To day (UTC)" type="date" value={days.to} onInput={(to) => change({ to })}
      />
    </>
  );
}
