// Keeps the events that something publishes to its one handler, and waits for them.
import { createWaiting } from "./waiting.ts";

export interface Received<Event extends { kind: string }> {
  events: Event[];
  receive(event: Event): void;
  /** The event of that kind and number, from 0, once it is there. */
  event<Kind extends Event["kind"]>(
    kind: Kind, number?: number): Promise<Extract<Event, { kind: Kind }>>;
  kinds(): string[];
}

export function createReceived<Event extends { kind: string }>(): Received<Event> {
  const events: Event[] = [];
  const waiting = createWaiting();
  return {
    events,
    receive: (event) => {
      events.push(event);
      waiting.look();
    },
    event: async <Kind extends Event["kind"]>(kind: Kind, number = 0) => {
      const found = () => events.filter((event): event is Extract<Event, { kind: Kind }> =>
        event.kind === kind);
      await waiting.until(() => found().length > number);
      return found()[number]!;
    },
    kinds: () => events.map(({ kind }) => kind),
  };
}
