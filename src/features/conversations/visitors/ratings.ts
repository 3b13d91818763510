// Visitors' ratings: of a reply, by thumb up or down, and of the whole conversation, from one to
// five. Both may be changed; neither costs anything. Called by rating-routes.ts.
import { Fault } from "#core/faults.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent, Rating } from "#events/events.ts";

export const SCORE_MAX = 5;

export interface RateReply {
  accountId: number;
  uuid: string;
  /** The turn whose reply is meant. */
  turnId: number;
  /** Null: withdrawn. */
  rating: Rating | null;
  now: Instant;
}

export interface RateConversation {
  accountId: number;
  uuid: string;
  score: number;
  comment: string | null;
  now: Instant;
}

/** Null: there is no such conversation, or no such reply in it. Each is one transaction. */
export interface RatingStore {
  /** No events: it already had this rating. */
  rateReply(args: RateReply): Promise<CommittedEvent[] | null>;
  rateConversation(args: RateConversation): Promise<CommittedEvent[] | null>;
}

export interface Satisfaction {
  score: number;
  comment: string | null;
  at: Instant;
}

interface RatingOptions {
  store: RatingStore;
  bus: EventBus;
  system: System;
}

export function createRatings({ store, bus, system }: RatingOptions) {
  const publish = (events: CommittedEvent[] | null, missing: string): void => {
    if (!events) throw new Fault(404, missing);
    bus.publishCommitted(events);
  };
  return {
    rateReply: async (args: Omit<RateReply, "now">): Promise<void> =>
      publish(await store.rateReply({ ...args, now: system.now() }), "Reply not found"),
    rateConversation: async (args: Omit<RateConversation, "now">): Promise<void> =>
      publish(await store.rateConversation({ ...args, now: system.now() }),
        "Conversation not found"),
  };
}

export type Ratings = ReturnType<typeof createRatings>;
