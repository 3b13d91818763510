// Looks for work on request: one look at a time, and one more for everything that is requested
// meanwhile. Used by background work that is driven by the database.
import type { Logger } from "./logger.ts";
import { createRecurring } from "./recurring.ts";
import { nextTurn } from "./system.ts";

interface Looks {
  /** Requests a look; all requests within one turn of the event loop are served by one look. */
  ask(): void;
  /** Resolves once no look is under way. */
  settled(): Promise<void>;
}

/** `look` works until it finds nothing more to do; `what` names it in the log where it fails. */
export function createLooks(look: () => Promise<void>, log: Logger, what: string): Looks {
  const recurring = createRecurring(log);
  let isAsked = false;
  let looking: Promise<void> | null = null;
  const run = async (): Promise<void> => {
    await nextTurn();
    while (isAsked) {
      isAsked = false;
      await look();
    }
  };
  const ask = (): void => {
    isAsked = true;
    looking ??= recurring.follow(what, run()).finally(() => {
      looking = null;
      // Asked for after the last look and before this line.
      if (isAsked) ask();
    });
  };
  const settled = async (): Promise<void> => {
    while (looking) await looking;
  };
  return { ask, settled };
}
