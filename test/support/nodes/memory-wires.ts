// Wires between nodes in one process: for tests, and the reference for tests of other wires. Like
// the real one it delivers messages asynchronously, and never to their publisher.
import { nextTurn, type System } from "#core/system.ts";
import { WireFault, type Wire } from "#cluster/wire.ts";

type Hear = Parameters<Wire["subscribe"]>[1];

interface Member {
  heard: Map<string, Set<Hear>>;
  /** Reject the requests that wait for an answer. */
  waiting: Set<(fault: WireFault) => void>;
  told: Set<(state: "up" | "down") => void>;
}

export interface MemoryWires {
  connect(): Wire;
  /** No message is delivered any more, until `start`. */
  stop(): void;
  start(): void;
}

export function createMemoryWires(system: System): MemoryWires {
  const members = new Set<Member>();
  let state: "up" | "down" = "up";
  const change = (to: "up" | "down"): void => {
    if (state === to) return;
    state = to;
    for (const { told, waiting } of members) {
      if (to === "down") for (const give of [...waiting]) give(new WireFault("down"));
      for (const one of [...told]) one(to);
    }
  };
  /** The subscribers of a subject, except those of the publisher. */
  const hearers = (speaker: Member, subject: string): Hear[] =>
    [...members].filter((member) => member !== speaker)
      .flatMap((member) => [...member.heard.get(subject) ?? []]);

  return {
    connect: () => connectTo({ members, system, hearers, stateOf: () => state }),
    stop: () => change("down"),
    start: () => change("up"),
  };
}

interface Hub {
  members: Set<Member>;
  system: System;
  hearers(speaker: Member, subject: string): Hear[];
  stateOf(): "up" | "down";
}

function connectTo({ members, system, hearers, stateOf }: Hub): Wire {
  const self: Member = { heard: new Map(), waiting: new Set(), told: new Set() };
  members.add(self);
  const isUp = (): boolean => stateOf() === "up" && members.has(self);
  const carry = (subject: string, data: Uint8Array, reply: Parameters<Hear>[1]): void => {
    const copy = data.slice();
    void nextTurn().then(() => {
      if (isUp()) for (const hear of hearers(self, subject)) hear(copy, reply);
    });
  };
  return {
    publish: (subject, data) => {
      if (isUp()) carry(subject, data, null);
    },
    subscribe: (subject, hear) => {
      const all = self.heard.get(subject) ?? new Set();
      self.heard.set(subject, all.add(hear));
      return () => {
        all.delete(hear);
        if (all.size === 0 && self.heard.get(subject) === all) self.heard.delete(subject);
      };
    },
    request: (subject, data, timeoutMs) => new Promise((resolve, reject) => {
      if (!isUp()) return reject(new WireFault("down"));
      if (hearers(self, subject).length === 0) return reject(new WireFault("nobody"));
      const over = (settle: () => void): void => {
        self.waiting.delete(fail);
        late.cancel();
        settle();
      };
      const fail = (fault: WireFault): void => over(() => reject(fault));
      const late = system.after(timeoutMs, () => fail(new WireFault("late")));
      self.waiting.add(fail);
      carry(subject, data, (answer) => {
        const copy = answer.slice();
        void nextTurn().then(() => isUp() && over(() => resolve(copy)));
      });
    }),
    state: () => (isUp() ? "up" : "down"),
    onState: (changed) => {
      self.told.add(changed);
      return () => void self.told.delete(changed);
    },
    close: async () => {
      members.delete(self);
      for (const give of [...self.waiting]) give(new WireFault("down"));
      self.told.clear();
    },
  };
}
