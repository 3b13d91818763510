// Read positions: up to when the visitor and each person of the account have read a conversation.
// Store port → factory. Called by callback-routes.ts.
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { Author, CommittedEvent } from "#events/events.ts";
import { conversationNotFound } from "#features/conversations/outcomes.ts";

export interface ReadingStore {
  /**
   * Records that everything written so far was read; `author` null: by the visitor. No events: it
   * was all read before or, for the visitor, no person has written since. Null: the account has no
   * such conversation.
   */
  read(args: {
    accountId: number; uuid: string; author: Author | null; now: Instant;
  }): Promise<CommittedEvent[] | null>;
}

export type Reading = ReturnType<typeof createReading>;

export function createReading(
  { store, bus, system }: { store: ReadingStore; bus: EventBus; system: System },
) {
  return {
    read: async (
      place: { accountId: number; uuid: string; author: Author | null },
    ): Promise<void> => {
      const events = await store.read({ ...place, now: system.now() });
      if (!events) throw conversationNotFound();
      bus.publishCommitted(events);
    },
  };
}
