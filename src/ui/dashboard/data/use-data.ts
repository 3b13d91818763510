// One thing loaded from the server: requested once however many places show it, shown from memory
// when it was seen before, reloaded when an event says that it has changed, and kept on the screen
// while a reload fails.
import { useCallback, useEffect, useReducer, useRef, useState } from "preact/hooks";
import { useEvents, useRetry } from "./live.tsx";
import { entryOf } from "./seen.ts";

export interface Data<T> {
  value: T | null;
  error: unknown;
  isLoading: boolean;
  reload(): void;
  /** Replaces the loaded value by one that is already known. */
  set(value: T): void;
}

interface DataOptions {
  /** Things that are costly to load wait longer for more events. */
  gatherMs?: number;
  /** A value younger than this is not loaded again for the next page that shows it. */
  freshMs?: number;
}

const NOTHING = { value: null, error: null };

/** Events come in bursts: a reload waits for so long for more of them. */
const GATHER_MS = 200;
/** For short lists that several pages need, for choices or for names of what has a number. */
export const SHARED = { freshMs: 60_000 };

/** `key` names what `load` loads: another key is another thing. `changedBy`: types of events. */
export function useData<T>(
  key: string, load: () => Promise<T>, changedBy: readonly string[] = [],
  { gatherMs = GATHER_MS, freshMs = 0 }: DataOptions = {},
): Data<T> {
  const entry = entryOf(key);
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const loader = useRef(load);
  loader.current = load;
  useEffect(() => {
    const changed = (): void => draw(undefined);
    entry.shownBy.add(changed);
    entry.changedBy = [...new Set([...entry.changedBy, ...changedBy])];
    entry.show(() => loader.current(), freshMs);
    return () => void entry.shownBy.delete(changed);
  }, [entry]);
  useEvents(changedBy, useCallback(() => entry.hear(gatherMs), [entry, gatherMs]));
  const reload = useCallback(() => entry.reload(() => loader.current()), [entry]);
  const set = useCallback((value: T) => entry.set(value), [entry]);
  const { value, error, isLoading } = entry;
  // Many places may show it: only one of them reloads.
  useRetry(error, () => entry.show(() => loader.current(), 0));
  return { value: value as T | null, error, isLoading, reload, set };
}

/**
 * Loads once each time it is mounted, and never from memory: a form must begin with the current
 * state, which must not change under the person who edits it.
 */
export function useFresh<T>(
  load: () => Promise<T>,
): { value: T | null; error: unknown; reload(): void } {
  const [state, setState] = useState<{ value: T | null; error: unknown }>(NOTHING);
  const reload = (): void => {
    setState(NOTHING);
    load().then(
      (value) => setState({ value, error: null }),
      (error: unknown) => setState({ value: null, error }));
  };
  useEffect(reload, []);
  return { ...state, reload };
}
