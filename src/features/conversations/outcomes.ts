// Outcomes of a send: the turn it began, the turn it repeats, or the refusal its client receives.
// Called by conversations.ts.
import { Fault } from "#core/faults.ts";
import { secondsToNextDay, type Instant } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import type { ModelUsage } from "#providers/models/port.ts";
import type { BeginOutcome, Given, TurnResult } from "./records.ts";

/** What a send led to. Watchers read the turn from `fromSequence` on. */
export type Sent =
  | {
      kind: "answering";
      turnId: number;
      fromSequence: number;
      /** The events committed after `fromSequence` when the turn began. */
      events: CommittedEvent[];
      replayed: boolean;
      /** The usage that models have reported so far; null: none. */
      usage(): ModelUsage | null;
      result: Promise<TurnResult>;
    }
  | { kind: "repeated"; turnId: number; fromSequence: number; result: TurnResult }
  /** A person has it: the message is stored, and the assistant is silent. */
  | { kind: "stored"; replayed: boolean };

/** The request's key was used before: this is what that request led to. */
export const isReplayed = (sent: Sent): boolean => sent.kind === "repeated" || sent.replayed;

export const conversationFull = (): Fault =>
  new Fault(400, "The conversation has reached its maximum number of messages.");
export const restarting = (): Fault =>
  new Fault(503, "The server is restarting.", { retryAfterS: 1 });
export const conversationNotFound = (): Fault => new Fault(404, "Conversation not found");
/** For every other account it does not exist. */
export function assertOwned(owned: { accountId: number }, by: { accountId: number }): void {
  if (owned.accountId !== by.accountId) throw conversationNotFound();
}

/** The same as for a message that waited too long in this node's own queue. */
const busyElsewhere = (): Fault => new Fault(
  409, "The conversation is still answering an earlier message.", { retryAfterS: 2 });

export const keyReused = (given: Given | null): Fault => {
  const message = `The Idempotency-Key was used for another ${given ? "request" : "message"}.`;
  return new Fault(422, message, { errors: { idempotency_key: [message] } });
};

/** All that a visitor learns; the account's money is its owner's business. */
export const insufficientBalance = (): Fault =>
  new Fault(400, "Insufficient balance. Please top up your account.", {
    code: "INSUFFICIENT_BALANCE",
  });

export function capReached(now: Instant): Fault {
  const retryAfterS = secondsToNextDay(now);
  return new Fault(429, "The assistant has reached its daily spending limit.", {
    retryAfterS, extra: { retry_after: retryAfterS },
  });
}

/** Maps outcomes of `beginTurn` that start no answer. */
export function settled(
  outcome: Exclude<BeginOutcome, { kind: "started" }>, given: Given | null, now: Instant,
): Sent {
  switch (outcome.kind) {
    case "stored":
      return { kind: "stored", replayed: false };
    case "repeated": {
      if (outcome.stored) return { kind: "stored", replayed: true };
      const result: TurnResult = outcome.reply
        ? {
            kind: "completed",
            text: outcome.reply.content,
            functionCalls: outcome.reply.functionCalls,
            stopped: outcome.reply.stopped,
            truncated: outcome.reply.truncated,
            usage: outcome.reply.usage,
          }
        : { kind: "failed", reason: "stopped", error: "The reply was stopped.", cause: null };
      return { kind: "repeated", turnId: outcome.turnId, fromSequence: outcome.userSequence - 1, result };
    }
    case "running":
      throw new Fault(409, "The message is being answered.", { retryAfterS: 1 });
    case "busy":
      throw busyElsewhere();
    case "key_reused":
      throw keyReused(given);
    case "balance_too_low":
      throw insufficientBalance();
    case "daily_cap_reached":
      throw capReached(now);
    case "conversation_full":
      throw conversationFull();
    case "not_found":
      throw conversationNotFound();
  }
}
