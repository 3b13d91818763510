// Work asked for often and done seldom: a busy campaign changes leads many times a second, and each
// look at the server counts against the key.
import { useCallback, useEffect, useRef } from "preact/hooks";

/** The first wish waits for those that come with it. */
const GATHER_MS = 200;

export function useCalmly(work: () => void, everyMs = 0): () => void {
  const current = useRef(work);
  current.current = work;
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const doneAt = useRef(-Infinity);
  useEffect(() => () => {
    if (timer.current !== null) clearTimeout(timer.current);
    timer.current = null;
  }, []);
  return useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      doneAt.current = performance.now();
      current.current();
    }, Math.max(GATHER_MS, doneAt.current + everyMs - performance.now()));
  }, [everyMs]);
}
