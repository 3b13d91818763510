// What fails in a call, in the words of the engine or the carrier, for the call's record. Kept by
// host.ts beside each session, which only has to know that something failed.

interface Engine<Options, Event, Stream> {
  readonly name: string;
  open(options: Options, publish: (event: Event) => void): Stream;
}

export interface Faults {
  /** Null: nothing has failed. */
  readonly newest: string | null;
  record(text: string): void;
  /** Wraps the engine, so that its failures are recorded. */
  watch<Options, Event extends { kind: string; error?: Error }, Stream,
    Kind extends Engine<Options, Event, Stream>>(
    engine: Kind & Engine<Options, Event, Stream>,
  ): Kind;
}

export function createFaults(): Faults {
  let newest: string | null = null;
  const watched = new WeakMap<object, object>();
  return {
    get newest() {
      return newest;
    },
    record: (text) => void (newest = text),
    watch: (engine) => {
      // One wrapper per engine: a call that goes on with the same engine keeps its stream.
      const known = watched.get(engine);
      if (known) return known as typeof engine;
      const watching = {
        ...engine,
        open: (...[options, publish]: Parameters<typeof engine.open>) =>
          engine.open(options, (event) => {
            if (event.kind === "failed") newest = `${engine.name}: ${event.error?.message ?? ""}`;
            publish(event);
          }),
      };
      watched.set(engine, watching);
      return watching;
    },
  };
}
