// Wakes whoever waits for something, once it holds.
export interface Waiting {
  until(holds: () => boolean): Promise<void>;
  /** Something changed. */
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
