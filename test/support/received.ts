// Keeps the events that something publishes to its one handler, and waits for them.
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
  let waiting: { holds(): boolean; resolve(): void }[] = [];
  return {
    events,
    receive: (event) => {
      events.push(event);
      for (const waiter of waiting.filter(({ holds }) => holds())) waiter.resolve();
      waiting = waiting.filter(({ holds }) => !holds());
    },
    event: async <Kind extends Event["kind"]>(kind: Kind, number = 0) => {
      const found = () => events.filter((event): event is Extract<Event, { kind: Kind }> =>
        event.kind === kind);
      if (found().length <= number) {
        await new Promise<void>((resolve) =>
          waiting.push({ holds: () => found().length > number, resolve }));
      }
      return found()[number]!;
    },
    kinds: () => events.map(({ kind }) => kind),
  };
}
