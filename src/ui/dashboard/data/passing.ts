// Failures that pass, and the pause before the next attempt. Used where a page keeps up with
// something by itself: a conversation, the sound of a call.
import { ParleyError } from "#client/client.ts";

/** A failure of the network, or a server that is restarting. */
export const isPassing = (error: unknown): boolean =>
  error instanceof ParleyError ? error.status >= 500 : error instanceof TypeError;

const RETRY_MS = 500;

/** Ends early when the signal aborts. */
export function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, RETRY_MS);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
