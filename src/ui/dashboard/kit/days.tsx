// Two days that narrow a list, both included: where people are, or in UTC as some lists count them.
import { TextField } from "./controls.tsx";

interface Days {
  /** `YYYY-MM-DD`; empty: not narrowed. */
  from: string;
  to: string;
}

const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export const daysQuery = ({ from, to }: Days) => ({
  ...(from ? { date_from: from } : {}),
  ...(to ? { date_to: to } : {}),
});

/** Where days are counted as they are here. */
export const ownDaysQuery = (days: Days) => ({
  ...daysQuery(days), ...(days.from || days.to ? { timezone: OWN_ZONE } : {}),
});

/** `isOwn`: counted as they are here. */
export function DayFields({ days, change, isOwn = false }: {
  days: Days; change(part: Partial<Days>): void; isOwn?: boolean;
}) {
  const where = isOwn ? "" : " (UTC)";
  return (
    <>
      <TextField
        label={`From day${where}`} type="date" value={days.from}
        onInput={(from) => change({ from })}
      />
      <TextField
        label={`To day${where}`} type="date" value={days.to} onInput={(to) => change({ to })}
      />
    </>
  );
}
