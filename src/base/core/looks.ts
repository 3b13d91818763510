// Looking for work that somebody says is there: one look at a time, and another for what is asked
// meanwhile. Used by what works off the database in the background.
import { nextTurn } from "./system.ts";

interface Looks {
  /** Something is there; looked at once for everything one turn of the event loop brought. */
  ask(): void;
  /** Resolves once no look is under way. */
  settled(): Promise<void>;
}

/** `look` finds out by itself when it is over; what it rejects with goes to `failed`. */
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
