// Two people edit the same thing: neither replaces unseen what the other has saved meanwhile.
import { useState } from "preact/hooks";
import { ParleyError } from "#client/client.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

/** What a field that was emptied holds is nothing. */
export const same = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one === "" ? null : one) === JSON.stringify(other === "" ? null : other);

/** The names of what differs between what is edited and what it was before. */
export const changedIn = <T extends object>(mine: T, base: T): (keyof T & string)[] =>
  (Object.keys(mine) as (keyof T & string)[]).filter((name) => !same(mine[name], base[name]));

/**
 * `base`: what `mine` was before it was edited. `merged`: what was changed here, and all else as
 * `theirs`. `taken`: the names of what both have changed, to different values.
 */
export function meanwhile<T extends object>(mine: T, base: T, theirs: T) {
  const changed = changedIn(mine, base);
  const merged: T = {
    ...theirs, ...Object.fromEntries(changed.map((name) => [name, mine[name]])),
  };
  const taken = changed.filter((name) =>
    !same(theirs[name], base[name]) && !same(theirs[name], mine[name]));
  return { merged, taken };
}

/** Stands beside each of these fields, as a refusal of the server's would. */
export function takenFault(names: string[]): ParleyError {
  const message = t(
    "Somebody else has changed this in the meantime. Save again to overwrite it with yours.");
  return new ParleyError(409, {
    message, errors: Object.fromEntries(names.map((name) => [name, [message]])),
  });
}

/**
 * A form about something that is there. `onWire`: its fields by the names the server has for them.
 */
export function useEdited<T extends object>(
  value: T | (() => T), onWire: (fields: T) => object = (fields) => fields,
) {
  const [before, setBefore] = useState(value);
  const [fields, setFields] = useState(before);
  return {
    before, fields,
    set: (part: Partial<T>): void => setFields((now) => ({ ...now, ...part })),
    /** What is to be saved on top of what the server has by now; throws where that was taken. */
    onto(theirs: T): T {
      const { merged } = meanwhile(fields, before, theirs);
      const { taken } = meanwhile(onWire(fields), onWire(before), onWire(theirs));
      setBefore(theirs);
      setFields((now) => meanwhile(now, before, theirs).merged);
      if (taken.length > 0) throw takenFault(taken);
      return merged;
    },
  };
}
