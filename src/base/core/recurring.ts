// Failures of work that is repeated every few seconds: each is logged once, not again and again.
import type { Logger } from "./logger.ts";

interface Recurring {
  /** Logged unless `what` failed for the same reason the last time. */
  failed(what: string, error: unknown): void;
  /** Says so if it failed the last time. */
  succeeded(what: string): void;
  /** Either of them, by how the work ends; resolves in both cases. */
  follow(what: string, work: Promise<unknown>): Promise<void>;
}

/** `what` names the work as the subject of a sentence: "renewing this node's lease". */
export function createRecurring(log: Pick<Logger, "error" | "info">): Recurring {
  const reasons = new Map<string, string>();
  const recurring: Recurring = {
    failed: (what, error) => {
      const reason = String(error);
      if (reasons.get(what) === reason) return;
      reasons.set(what, reason);
      log.error({ err: error }, `${what} failed`);
    },
    succeeded: (what) => {
      if (reasons.delete(what)) log.info(`${what} works again`);
    },
    follow: (what, work) => work.then(
      () => recurring.succeeded(what), (error: unknown) => recurring.failed(what, error)),
  };
  return recurring;
}
