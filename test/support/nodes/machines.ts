// Nodes on machines with clocks of their own, over one database: several stores over one SQLite
// file stand for several machines.
import { rmSync } from "node:fs";
import { createNodes, type NodeStore } from "#cluster/nodes.ts";
import type { Wire } from "#cluster/wire.ts";
import { createLogger, type Logger } from "#core/logger.ts";
import { nextTurn } from "#core/system.ts";
import { createReader } from "#storage/engines/sqlite/reader.ts";
import { storageOver } from "#storage/engines/sqlite/storage.ts";
import { createInlineWriter } from "#storage/engines/sqlite/writer.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createMemoryWires } from "./memory-wires.ts";
import { testDataDir } from "#support/server.ts";

const log = createLogger("silent");
export const SECOND = 1000;
const LEASE_MS = 30 * SECOND;

/** Machines with clocks of their own, which go on together, over one database with its own. */
export function createMachines() {
  const dataDir = testDataDir();
  const writer = createInlineWriter(dataDir);
  const reader = createReader(dataDir);
  const time = createManualSystem();
  const wires = createMemoryWires(time);
  const machines: Machine[] = [];
  let isAway = false;
  /** The store as a node sees it: on the test's clock, and away when the database is. */
  const seen = (store: NodeStore, own: Own): NodeStore => Object.fromEntries(
    Object.entries({ ...store, clock: async () => time.now() }).map(([name, ask]) => [
      name,
      async (...args: never[]) => {
        if (own.isFar) await nextTurn();
        if (isAway || own.isAway) throw new Error("the database is away");
        return (ask as (...args: never[]) => Promise<unknown>)(...args);
      },
    ])) as unknown as NodeStore;

  const join = async ({
    wire = wires.connect() as Wire | null, isAlone = false, recovering = Promise.resolve(),
  } = {}) => {
    const nodeId = await writer.write("nodes.join", {
      name: "n", url: `http://n${machines.length}`, version: "1", protocol: 1, schemaVersion: 28, isAlone,
      now: time.now(), leaseUntil: isAlone ? null : time.now() + LEASE_MS * 1000,
    });
    const system = createManualSystem();
    const storage = storageOver(reader, writer, nodeId);
    const own: Own = { isAway: false, isFar: false };
    const warnings: number[] = [];
    const warn = ({ ahead_ms: by }: { ahead_ms?: number }): unknown => by && warnings.push(by);
    const logged: string[] = [];
    const error = (_: object, text: string): unknown => logged.push(text);
    const info = (text: string): unknown => logged.push(text);
    const nodes = createNodes({
      nodeId, wire, system, log: { ...log, warn, error, info } as Logger, self: { url: null },
      store: { ...seen(storage.nodes, own), isAlone },
    });
    const machine = {
      nodes, storage, system, own, warnings, logged, recoveries: 0, lost: false, isDead: false,
    };
    nodes.onLost(() => (machine.lost = true));
    machines.push(machine);
    await nodes.start({
      calls: () => 0, streams: () => 0,
      recover: async () => {
        machine.recoveries += 1;
        await recovering;
        await storage.conversations.recover({ now: time.now() });
      },
    });
    return machine;
  };
  return {
    join,
    wires,
    close: async (): Promise<void> => {
      await reader.close();
      await writer.close();
      rmSync(dataDir, { recursive: true });
    },
    away: (is: boolean): void => void (isAway = is),
    /** So much time in which nobody runs. */
    sleep: (ms: number): void => {
      time.advance(ms);
      for (const { system } of machines) system.step(ms);
    },
    /** So much time for everybody who is not dead, in steps that let each finish its beat. */
    pass: async (ms: number): Promise<void> => {
      for (let gone = 0; gone < ms; gone += SECOND) {
        time.advance(SECOND);
        for (const { system, isDead } of machines) if (!isDead) system.advance(SECOND);
        for (let turn = 0; turn < 30; turn += 1) await nextTurn();
      }
    },
  };
}

/** How a machine reaches the database. */
interface Own {
  isAway: boolean;
  /** Answers of other nodes are there sooner. */
  isFar: boolean;
}

interface Machine {
  system: ReturnType<typeof createManualSystem>;
  isDead: boolean;
}
