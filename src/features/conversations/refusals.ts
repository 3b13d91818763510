// Notifies the owner of an assistant that a visitor could not be answered; the visitor is told so
// in neutral words only. A reply that began and failed is published as `reply_failed`; this is for
// messages that were refused before. Called by conversations.ts and creation.ts.
import { LIMITS } from "#core/limits.ts";
import { createRateLimiter } from "#core/rate-limit.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { Refused } from "#events/events.ts";
import type { ConversationStore } from "./records.ts";

export interface RefusedVisitor {
  accountId: number;
  assistantUuid: string;
  /** Null: the conversation could not be created. */
  conversationUuid: string | null;
  reason: Refused;
  /** The assistant's own limit, so that reaching another is published again. */
  dailyCap?: number | null;
}

/** Publishes the same refusal only once in a while, because visitors may retry without end. */
export function createRefusals(
  { store, bus, system }: { store: ConversationStore; bus: EventBus; system: System },
): { publish(refused: RefusedVisitor): Promise<void> } {
  /** Keyed by account, reason and limit. */
  const rates = createRateLimiter([{ count: 1, windowMs: LIMITS.troubleToldMs }], {
    system, keysMax: LIMITS.rateLimiterKeysMax,
  });
  return {
    publish: async ({ dailyCap = null, ...refused }) => {
      const key = `${refused.accountId} ${refused.reason} ${String(dailyCap)}`;
      if (!rates.take(key).allowed) return;
      bus.publishCommitted(await store.publishRefused({ ...refused, now: system.now() }));
    },
  };
}
