// Waits for conditions, which are checked again whenever something has changed.
export interface Waiting {
  until(holds: () => boolean): Promise<void>;
  /** Something changed: checks the conditions again. */
  look(): void;
}

export function createWaiting(): Waiting {
  let waiting: { holds(): boolean; resolve(): void }[] = [];
  return {
    until: (holds) => new Promise((resolve) => {
      if (holds()) resolve();
      else waiting.push({ holds, resolve });
    }),
    look: () => {
      waiting = waiting.filter(({ holds, resolve }) => {
        const isDone = holds();
        if (isDone) resolve();
        return !isDone;
      });
    },
  };
}
