// Optimistic changes: each is made to the very version of a row that it has read, or begun again.
// Used by features whose rows several people and programs change.
import { Fault } from "./faults.ts";

/** The OpenAPI response of every operation that makes such changes. */
export const LOST_TOO_OFTEN = { 409: { description: "Someone else is changing it; try again" } };

/** A change loses its race only to changes that won theirs. */
const ATTEMPTS_MAX = 32;

/**
 * `attempt` reads, judges and writes; it resolves to null where somebody else has changed the row
 * meanwhile. Rejects with Fault 409 where it has lost too often.
 */
export async function changing<T extends object>(
  what: string, attempt: () => Promise<T | null>,
): Promise<T> {
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
    const done = await attempt();
    if (done !== null) return done;
  }
  throw new Fault(409, `The ${what} is being changed by someone else. Please try again.`, {
    retryAfterS: 1,
  });
}
