// Changes that are judged by the row they have read: made of that row, or begun again. Used by
// features whose rows several people and programs change.
import { Fault } from "./faults.ts";

/** What the OpenAPI document says of it, beside each operation that changes so. */
export const LOST_TOO_OFTEN = { 409: { description: "Others are changing it: please try again" } };

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
  throw new Fault(409, `The ${what} is being changed by others. Please try again.`, {
    retryAfterS: 1,
  });
}
