// Who has read a conversation up to when: the visitor, and each person of the account. Store port →
// factory. Called by callback-routes.ts.
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { Author, CommittedEvent } from "#events/events.ts";
import { conversationNotFound } from "#features/conversations/outcomes.ts";

export interface ReadingStore {
  /**
   * Notes that everything written so far was read; null as `author`: by the visitor. No events:
   * nothing has been written since, or nothing whose being read anybody waits for. Null: the
   * account has no such conversation.
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
