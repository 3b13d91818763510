// Wires on which messages are lost, duplicated and reordered at random; each message moves when the
// test says so.
import type { System } from "#core/system.ts";
import { WireFault, type Wire } from "#cluster/wire.ts";

type Hear = Parameters<Wire["subscribe"]>[1];

interface LossyWire extends Wire {
  /** Nothing comes or goes until the wire is mended. */
  cut(): void;
  mend(): void;
}

interface Member {
  heard: Map<string, Set<Hear>>;
  state: "up" | "down";
}

export interface LossyWires {
  connect(): LossyWire;
  /** A message in flight arrives, or is lost, or arrives and is in flight once more. */
  move(): void;
  underWay(): number;
  /** From now on messages arrive once and in order; false: at random again. */
  calm(isCalm?: boolean): void;
}

/** `chance` gives numbers from 0 up to 1. */
export function createLossyWires(system: System, chance: () => number): LossyWires {
  const members = new Set<Member>();
  const underWay: (() => void)[] = [];
  let isCalm = false;
  return {
    connect: () => {
      const self: Member = { heard: new Map(), state: "up" };
      const { heard } = self;
      const told = new Set<(state: "up" | "down") => void>();
      members.add(self);
      const hearersOf = (subject: string): Hear[] => [...members]
        .filter((member) => member !== self && member.state === "up")
        .flatMap((member) => [...member.heard.get(subject) ?? []]);
      const change = (to: "up" | "down"): void => {
        self.state = to;
        for (const tell of told) tell(to);
      };
      const send = (subject: string, data: Uint8Array, reply: Parameters<Hear>[1]): void =>
        void underWay.push(() => {
          for (const hear of hearersOf(subject)) hear(data.slice(), reply);
        });
      return {
        publish: (subject, data) => {
          if (self.state === "up") send(subject, data.slice(), null);
        },
        subscribe: (subject, hear) => {
          const all = heard.get(subject) ?? new Set();
          heard.set(subject, all.add(hear));
          return () => void all.delete(hear);
        },
        request: (subject, data, timeoutMs) => new Promise((resolve, reject) => {
          if (self.state === "down") return reject(new WireFault("down"));
          if (hearersOf(subject).length === 0) return reject(new WireFault("nobody"));
          const late = system.after(timeoutMs, () => reject(new WireFault("late")));
          send(subject, data.slice(), (answer) => void underWay.push(() => {
            late.cancel();
            resolve(answer.slice());
          }));
        }),
        state: () => self.state,
        onState: (tell) => {
          told.add(tell);
          return () => void told.delete(tell);
        },
        close: async () => void members.delete(self),
        cut: () => change("down"),
        mend: () => change("up"),
      };
    },
    move: () => {
      const index = isCalm ? 0 : Math.floor(chance() * underWay.length);
      const [message] = underWay.splice(index, 1);
      if (!message) return;
      const luck = isCalm ? 1 : chance();
      if (luck < 0.1) return;
      if (luck < 0.2) underWay.push(message);
      message();
    },
    underWay: () => underWay.length,
    calm: (now = true) => (isCalm = now),
  };
}
