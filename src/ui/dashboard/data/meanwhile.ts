// Two people edit the same thing: neither overwrites unseen what the other has saved.
import { useState } from "preact/hooks";
import { ParleyError } from "#client/client.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

/** An emptied field counts as null. */
export const same = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one === "" ? null : one) === JSON.stringify(other === "" ? null : other);

/** The names of the fields in which `mine` differs from `base`. */
export const changedIn = <T extends object>(mine: T, base: T): (keyof T & string)[] =>
  (Object.keys(mine) as (keyof T & string)[]).filter((name) => !same(mine[name], base[name]));

/**
 * `base`: `mine` before it was edited. `merged`: the fields changed here, and all others from
 * `theirs`. `taken`: the names of fields that both have changed, to different values.
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

/** Shown beside each of these fields, like a refusal by the server. */
export function takenFault(names: string[]): ParleyError {
  const message = t(
    "Somebody else has changed this in the meantime. Save again to overwrite it with yours.");
  return new ParleyError(409, {
    message, errors: Object.fromEntries(names.map((name) => [name, [message]])),
  });
}

/** A form that edits an existing thing. `onWire`: its fields under the server's names. */
export function useEdited<T extends object>(
  value: T | (() => T), onWire: (fields: T) => object = (fields) => fields,
) {
  const [before, setBefore] = useState(value);
  const [fields, setFields] = useState(before);
  return {
    before, fields,
    set: (part: Partial<T>): void => setFields((now) => ({ ...now, ...part })),
    /** What to save on top of the server's current state; throws where both changed a field. */
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
