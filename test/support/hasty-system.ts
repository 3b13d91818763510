// A System whose waits are over at once.
import { createSystem, type System } from "#core/system.ts";

/** `waits`: how long each was to be. */
export function createHastySystem(): System & { waits: number[] } {
  const waits: number[] = [];
  const system = createSystem();
  return {
    ...system, waits,
    after: (delayMs, run) => {
      waits.push(delayMs);
      return system.after(0, run);
    },
  };
}
