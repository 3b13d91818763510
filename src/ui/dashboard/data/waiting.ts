// Requests that wait because of the rate limit, and until when: shown on the page, which continues
// by itself.
import { useEffect, useState } from "preact/hooks";

const waits = new Set<number>();
const listeners = new Set<() => void>();

const notify = (): void => {
  for (const listener of listeners) listener();
};

/** `ms`: how long the server asks to wait. */
export async function waitingFor(ms: number, wait: () => Promise<unknown>): Promise<void> {
  const until = Date.now() + ms + Math.random();
  waits.add(until);
  notify();
  await wait();
  waits.delete(until);
  notify();
}

/** When the last of the waiting requests continues; null: none waits. */
export function useWaiting(): number | null {
  const [until, setUntil] = useState<number | null>(null);
  useEffect(() => {
    const listener = (): void => setUntil(waits.size > 0 ? Math.max(...waits) : null);
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return until;
}
