// Wires on which messages are lost, doubled and overtake one another, as chance has it; each moves
// on when the test says so.
import type { System } from "#core/system.ts";
import { WireFault, type Wire } from "#cluster/wire.ts";

type Hear = Parameters<Wire["subscribe"]>[1];

export interface LossyWires {
  connect(): Wire;
  /** Something under way arrives, or is lost, or arrives and is under way once more. */
  move(): void;
  underWay(): number;
  /** From now on everything arrives once, or not. */
  calm(isCalm?: boolean): void;
}

/** `chance` gives numbers from 0 up to 1. */
export function createLossyWires(system: System, chance: () => number): LossyWires {
  const members = new Set<Map<string, Set<Hear>>>();
  const underWay: (() => void)[] = [];
  let isCalm = false;
  return {
    connect: () => {
      const heard = new Map<string, Set<Hear>>();
      members.add(heard);
      const hearersOf = (subject: string): Hear[] => [...members]
        .filter((member) => member !== heard).flatMap((member) => [...member.get(subject) ?? []]);
      const send = (subject: string, data: Uint8Array, reply: Parameters<Hear>[1]): void =>
        void underWay.push(() => {
          for (const hear of hearersOf(subject)) hear(data.slice(), reply);
        });
      return {
        publish: (subject, data) => send(subject, data.slice(), null),
        subscribe: (subject, hear) => {
          const all = heard.get(subject) ?? new Set();
          heard.set(subject, all.add(hear));
          return () => void all.delete(hear);
        },
        request: (subject, data, timeoutMs) => new Promise((resolve, reject) => {
          if (hearersOf(subject).length === 0) return reject(new WireFault("nobody"));
          const late = system.after(timeoutMs, () => reject(new WireFault("late")));
          send(subject, data.slice(), (answer) => void underWay.push(() => {
            late.cancel();
            resolve(answer.slice());
          }));
        }),
        state: () => "up",
        onState: () => () => undefined,
        close: async () => void members.delete(heard),
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
