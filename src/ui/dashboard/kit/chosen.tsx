// The selected rows of a list, to which an action applies at once, and the bar with those actions.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import type { Frame } from "#client/client.ts";
import { useEvents } from "#ui/dashboard/data/live.tsx";
import type { Rows } from "#ui/dashboard/data/rows.ts";
import { Button } from "./controls.tsx";
import type { Choice } from "./table.tsx";
import { plural, t } from "./texts.ts";
import "./chosen.css";

/** As many as the API takes at once. */
const MANY_MAX = 100;
/** A question names this many; the others are counted. */
export const NAMED_MAX = 5;

export interface Listed<Id = string | number> {
  id: Id;
}

export interface Chosen<T extends Listed> {
  rows: T[];
  choice: Choice<T>;
  drop(ids: T["id"][]): void;
  clear(): void;
}

interface ChosenOptions<T> {
  /** Another key is another list, in which nothing is selected. */
  key: string;
  nameOf(row: T): string;
  /** The event that a row is gone, and the event's member that holds the row's id. */
  gone: { event: string; member: string };
}

export function useChosen<T extends Listed>(
  { key, nameOf, gone: { event, member } }: ChosenOptions<T>,
): Chosen<T> {
  const [rows, setRows] = useState<T[]>([]);
  const drop = useCallback((ids: T["id"][]) => {
    setRows((before) => before.filter(({ id }) => !ids.includes(id)));
  }, []);
  const clear = useCallback(() => setRows([]), []);
  useEffect(clear, [key, clear]);
  useEvents([event], useCallback((frame: Frame) => {
    if (member in frame) drop([frame[member] as T["id"]]);
  }, [drop, member]));
  const ids = new Set(rows.map(({ id }) => id));
  return {
    rows, drop, clear,
    choice: {
      has: ({ id }) => ids.has(id),
      isFull: rows.length >= MANY_MAX,
      label: (row) => t(`Select ${nameOf(row)}`),
      set: (some, isOn) => {
        const kept = rows.filter(({ id }) => !some.some((row) => row.id === id));
        setRows(isOn ? [...kept, ...some].slice(0, MANY_MAX) : kept);
      },
    },
  };
}

/** Renders nothing while nothing is selected. */
export function ChosenBar<T extends Listed>({ label, chosen: { rows, clear }, children }: {
  label: string; chosen: Chosen<T>; children: ComponentChildren;
}) {
  if (rows.length === 0) return null;
  return (
    <div class="chosen-bar" role="group" aria-label={label}>
      <strong role="status">{plural(rows.length, "{count} selected", "{count} selected")}</strong>
      {rows.length >= MANY_MAX && <small>No more can be selected at once.</small>}
      {children}
      <Button kind="quiet" icon="close" onClick={clear}>Select none</Button>
    </div>
  );
}

/** The rows as the list has them now: it may have changed since they were selected. */
export function asListed<T extends Listed>(rows: T[], list: Rows<T>): T[] {
  const now = new Map<T["id"], T>();
  for (let at = 0; at < (list.count ?? 0); at += 1) {
    const row = list.at(at);
    if (row) now.set(row.id, row);
  }
  return rows.map((row) => now.get(row.id) ?? row);
}

export function namesOf<T>(rows: T[], nameOf: (row: T) => string, most: number): string {
  const named = rows.slice(0, most).map(nameOf).join(", ");
  const rest = rows.length - most;
  return rest > 0
    ? plural(rest, "{names} and {count} more", "{names} and {count} more", { names: named }) : named;
}
