// One thing loaded from the server: shown from memory at once when it was seen before, loaded again
// when an event says that it has changed, kept on the screen while that goes wrong.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useEvents } from "./live.tsx";

export interface Data<T> {
  value: T | null;
  error: unknown;
  isLoading: boolean;
  reload(): void;
  /** Puts what is known already in place of what is loaded. */
  set(value: T): void;
}

/** Events come in bursts: a reload waits for so long for more of them. */
const GATHER_MS = 200;
const SEEN_MAX = 100;

const seen = new Map<string, unknown>();

function remember(key: string, value: unknown): void {
  seen.delete(key);
  seen.set(key, value);
  const oldest = seen.keys().next().value;
  if (seen.size > SEEN_MAX && oldest !== undefined) seen.delete(oldest);
}

/** When somebody else signs in. */
export const forgetSeen = (): void => seen.clear();

/**
 * `key` names what `load` loads: another key is another thing. `changedBy`: types of events.
 * `gatherMs`: what is dear to load waits longer for more of them.
 */
export function useData<T>(
  key: string, load: () => Promise<T>, changedBy: readonly string[] = [], gatherMs = GATHER_MS,
): Data<T> {
  const [state, setState] = useState<Omit<Data<T>, "reload" | "set">>(() => initial<T>(key));
  const current = useRef({ key, load, run: 0 });
  current.current.load = load;
  const reload = useCallback(() => {
    const run = (current.current.run += 1);
    const isCurrent = (): boolean => current.current.run === run;
    setState((before) => ({ ...before, isLoading: true }));
    current.current.load().then(
      (value) => {
        if (!isCurrent()) return;
        remember(current.current.key, value);
        setState({ value, error: null, isLoading: false });
      },
      (error: unknown) => {
        if (isCurrent()) setState((before) => ({ ...before, error, isLoading: false }));
      },
    );
  }, []);
  useEffect(() => {
    if (current.current.key !== key) {
      current.current.key = key;
      setState(initial<T>(key));
    }
    reload();
    return () => void (current.current.run += 1);
  }, [key]);
  useReloads(changedBy, reload, gatherMs);
  const set = useCallback((value: T) => {
    current.current.run += 1;
    remember(current.current.key, value);
    setState({ value, error: null, isLoading: false });
  }, []);
  return { ...state, reload, set };
}

const initial = <T>(key: string): Omit<Data<T>, "reload" | "set"> =>
  ({ value: (seen.get(key) as T | undefined) ?? null, error: null, isLoading: true });

/** One reload for a burst of events. */
export function useReloads(
  changedBy: readonly string[], reload: () => void, gatherMs = GATHER_MS,
): void {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const hear = useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      reload();
    }, gatherMs);
  }, [reload, gatherMs]);
  useEvents(changedBy, hear);
  useEffect(() => () => {
    if (timer.current !== null) clearTimeout(timer.current);
    timer.current = null;
  }, []);
}
