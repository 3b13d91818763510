// Notifies the owner of an assistant that a visitor could not be answered; the visitor is told so
// in neutral words only. A reply that began and failed is published as `reply_failed`; this is for
// messages that were refused before. Called by conversations.ts and creation.ts.
import { LIMITS } from "#core/limits.ts";
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
  /** When it was published last, keyed by account, reason and limit. */
  const logged = new Map<string, number>();
  return {
    publish: async ({ dailyCap = null, ...refused }) => {
      const name = `${refused.accountId} ${refused.reason} ${String(dailyCap)}`;
      const nowMs = system.monotonicMs();
      const last = logged.get(name);
      if (last !== undefined && nowMs - last < LIMITS.troubleToldMs) return;
      logged.set(name, nowMs);
      bus.publishCommitted(await store.publishRefused({ ...refused, now: system.now() }));
    },
  };
}
