// Looks for work on request: one look at a time, and one more for everything that is requested
// meanwhile. Used by background work that is driven by the database.
import { nextTurn } from "./system.ts";

interface Looks {
  /** Requests a look; all requests within one turn of the event loop are served by one look. */
  ask(): void;
  /** Resolves once no look is under way. */
  settled(): Promise<void>;
}

/** `look` works until it finds nothing more to do; its rejection is passed to `failed`. */
export function createLooks(look: () => Promise<void>, failed: (error: unknown) => void): Looks {
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
    looking ??= run().catch(failed).finally(() => {
      looking = null;
      // Asked for after the last look and before this line.
      if (isAsked) ask();
    });
  };
  return { ask, settled: async () => void await looking };
}
