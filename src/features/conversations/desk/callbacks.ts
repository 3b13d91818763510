// Callbacks: a visitor who does not want to wait leaves contact details, and the conversation stays
// in the inbox until somebody has called back. Records → store port → factory. Called by
// callback-routes.ts.
import { Fault } from "#core/faults.ts";
import { isoMicros, isoOrNull, type Instant, type System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { Author, Away, CallbackBody, CommittedEvent } from "#events/events.ts";

/** What the visitor enters; at least one of `phone` and `email` is present. */
export type CallbackWish = Pick<CallbackBody, "name" | "phone" | "email" | "wish" | "time">;

export interface Callback extends CallbackWish {
  id: number;
  createdAt: Instant;
  doneAt: Instant | null;
}

/** Each method is one transaction; writes resolve once they are durable. */
export interface CallbackStore {
  /** Replaces an open callback; the conversation now waits. Null: there is no such conversation. */
  request(args: CallbackWish & {
    accountId: number; uuid: string; away: Away | null; now: Instant;
  }): Promise<{ callback: Callback; events: CommittedEvent[] } | null>;
  /** Null: the account has no such conversation, or none is open there. */
  finish(args: {
    accountId: number; uuid: string; author: Author; now: Instant;
  }): Promise<{ callback: Callback; events: CommittedEvent[] } | null>;
  /** Newest first. */
  list(conversationId: number): Promise<Callback[]>;
}

export const callbackItem = (
  { id, name, phone, email, wish, time, createdAt, doneAt }: Callback,
): CallbackBody => ({
  id, name, phone, email, wish, time, created_at: isoMicros(createdAt),
  done_at: isoOrNull(doneAt),
});

export type Callbacks = ReturnType<typeof createCallbacks>;

export function createCallbacks(
  { store, bus, system }: { store: CallbackStore; bus: EventBus; system: System },
) {
  const published = (
    outcome: { callback: Callback; events: CommittedEvent[] } | null, missing: string,
  ): Callback => {
    if (!outcome) throw new Fault(404, missing);
    bus.publishCommitted(outcome.events);
    return outcome.callback;
  };
  return {
    request: async (
      place: { accountId: number; uuid: string; away: Away | null }, wish: CallbackWish,
    ): Promise<Callback> => published(
      await store.request({ ...place, ...wish, now: system.now() }), "Conversation not found"),
    finish: async (
      place: { accountId: number; uuid: string; author: Author },
    ): Promise<Callback> => published(
      await store.finish({ ...place, now: system.now() }), "Callback not found"),
    list: store.list,
  };
}
