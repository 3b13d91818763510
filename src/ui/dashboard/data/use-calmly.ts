// Throttles work that is requested often: a busy campaign changes leads many times a second, and
// each request to the server counts against the key's rate limit.
import { useCallback, useEffect, useRef } from "preact/hooks";
import { PATIENCE_MS } from "./seen.ts";

/** The first request waits for others that come with it. */
const GATHER_MS = 200;

/** While `work` returns an unsettled promise it does not run again: a busy server answers late. */
export function useCalmly(work: () => unknown, everyMs = 0): () => void {
  const current = useRef(work);
  current.current = work;
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const doneAt = useRef(-Infinity);
  const busyUntil = useRef(-Infinity);
  useEffect(() => () => {
    if (timer.current !== null) clearTimeout(timer.current);
    timer.current = null;
  }, []);
  return useCallback(function soon(): void {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      const now = performance.now();
      if (now < busyUntil.current) return soon();
      doneAt.current = now;
      busyUntil.current = now + PATIENCE_MS;
      void Promise.resolve(current.current()).finally(() => (busyUntil.current = -Infinity));
    }, Math.max(GATHER_MS, doneAt.current + everyMs - performance.now()));
  }, [everyMs]);
}
