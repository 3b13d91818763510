// What `parley doctor` reports about a database server, the nodes that serve it together and the
// connections between them.
import { openWire } from "#app/wire.ts";
import type { Config } from "#config/config.ts";
import { LIMITS } from "#core/limits.ts";
import { createLogger, type Logger } from "#core/logger.ts";
import { findSecret, secretMark } from "#core/secrets.ts";
import { createSystem, wait } from "#core/system.ts";
import { auditLedger } from "#storage/accounts/ledger-audit.ts";
import type { Storage } from "#storage/storage.ts";
import { withStorage } from "./command.ts";

export interface Finding {
  check: string;
  ok: boolean;
  detail: string;
}

const WIRE_MS = 3000;

const counted = (things: number, what: string): string => `${things} ${what}`;

const agoOf = (from: number, now: number): string =>
  `${Math.max(0, Math.round((now - from) / 1_000_000))} s`;

/** One line per node, then the work that waits for any of them. */
async function examineNodes(storage: Storage): Promise<Finding[]> {
  const { viewCluster } = await import("#app/cluster.ts");
  const { now, nodes, waiting } = await viewCluster(storage, null);
  // Without a living node, the next one to start takes over from a dead one, so nothing is wrong.
  const isLiving = nodes.some(({ state }) => state !== "dead");
  const lines = nodes.map((node): Finding => {
    const owns = Object.entries(node.owned).map(([what, things]) => counted(things, what));
    const left = node.leaseUntil === null ? null : node.leaseUntil - now;
    return {
      check: `node ${node.id}`,
      ok: node.state !== "dead" || !isLiving,
      detail: [
        node.state, node.name, ...node.url === null ? [] : [node.url],
        `version ${node.version || "unknown"}`, `up ${agoOf(node.startedAt, now)}`,
        `last seen ${agoOf(node.beatAt, now)} ago`,
        ...left === null || left < 0 ? [] : [`lease for ${agoOf(now, now + left)} more`],
        `${counted(node.calls, "calls")} and ${counted(node.streams, "streams")}`,
        ...owns.length === 0 ? [] : [`owns ${owns.join(", ")}`],
        ...node.leases.map((name) => `has the lease ${name}`),
      ].join(", "),
    };
  });
  return [
    ...lines.length > 0 ? lines : [{ check: "nodes", ok: true, detail: "none running" }],
    {
      check: "waiting", ok: true,
      detail: `${counted(waiting.documents, "documents")}, ${counted(waiting.deliveries, "webhooks")}`,
    },
  ];
}

/** How far behind others may be: a standby by its WAL, messages between nodes by NATS. */
async function examineLag(config: Config, url: string): Promise<Finding[]> {
  const { inspectServer } = await import("#storage/engines/postgres/inspect.ts");
  const system = createSystem();
  const { clockOffMs, secretMark: begun, standbys, refusal } = await inspectServer(url, system);
  const offMs = Math.round(Math.abs(clockOffMs));
  const secret = findSecret(config.PARLEY_SECRET, config.PARLEY_DATA_DIR);
  const isOurs = begun === null
    || (secret !== null && secretMark(secret, "parley database") === begun);
  return [
    ...refusal === null ? [] : [{ check: "changes", ok: false, detail: `not possible: ${refusal}` }],
    {
      check: "clock", ok: offMs <= LIMITS.clockOffMsTold,
      detail: offMs === 0 ? "same as the database's" : `${offMs} ms off the database's`,
    },
    {
      check: "secret", ok: isOurs,
      detail: isOurs ? "the same on all nodes" : "not the one the database was created with",
    },
    ...standbys.length > 0 ? [] : [{ check: "standby", ok: true, detail: "none" }],
    ...standbys.map(({ name, state, sync, lagBytes }) => ({
      check: "standby", ok: state === "streaming",
      detail: `${name}: ${state}, ${sync}, ${counted(lagBytes, "bytes")} behind`,
    })),
  ];
}

async function examineWire(config: Config): Promise<Finding[]> {
  if (config.PARLEY_NATS_URL === null) return [];
  const system = createSystem();
  let why = "no answer";
  const log = {
    ...createLogger("silent"), info: () => undefined,
    warn: ({ err }: { err: Error }) => void (why = err.message),
  } as Logger;
  // Subscribes under a name of its own, which disturbs no node.
  const wire = await openWire({ config, system, log }, "doctor");
  if (!wire) return [];
  try {
    const up = Promise.withResolvers<void>();
    wire.onState((state) => state === "up" && up.resolve());
    if (wire.state() !== "up") await Promise.race([up.promise, wait(system, WIRE_MS)]);
    const ok = wire.state() === "up";
    const detail = ok ? "answers" : `unreachable (${why}): messages go through the database`;
    return [{ check: "NATS", ok, detail }];
  } finally {
    await wire.close();
  }
}

/** The database of PARLEY_DATABASE_URL; opening it has already checked its configuration. */
export async function examineServer(config: Config, url: string): Promise<Finding[]> {
  const check = "database";
  try {
    return await withStorage(config, async (storage) => {
      const { problems, accounts } = await auditLedger(storage.ledger);
      const ok = problems.length === 0;
      const detail = ok ? `PostgreSQL, ledger of ${accounts} accounts correct` : problems.join("; ");
      return [
        { check, ok, detail },
        ...await examineLag(config, url), ...await examineWire(config),
        ...await examineNodes(storage),
      ];
    });
  } catch (error) {
    return [{ check, ok: false, detail: (error as Error).message }];
  }
}
