// Rows of the processes that serve the database: which are live, which are gone, which holds a
// lease. The rules are in cluster/nodes.ts. Also the condition under which another process may take
// what a process owns.
import type { LeaseName, NewNode, NodeRecord, NodeState, NodeStore } from "#cluster/nodes.ts";
import { LIMITS } from "#core/limits.ts";
import type { Instant } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import { VERSION } from "#core/version.ts";
import { shippedMigrations } from "#storage/migrations.ts";
import { nodeFigures } from "./figures.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

/** The node id for commands outside a server. It owns nothing: what it begins is free at once. */
export const NOBODY = 0;

/** Arguments with the writing node's id: only that node may end what it has begun. */
export type AsNode<Args> = Args & { nodeId: number };

/** No living node owns it. Leases are not compared with the time here: only a burial does that. */
export const isFree = (column: string): string => `(${column} IS NULL OR NOT EXISTS (
  SELECT 1 FROM nodes WHERE nodes.id = ${column} AND nodes.state <> 'gone'))`;

/** How long rows of dead processes are kept for inspection. */
const KEPT_MICROS = 7 * DAY_MICROS;

interface NodeRow {
  id: number;
  name: string;
  url: string | null;
  state: NodeState;
  started_at: number;
  beat_at: number;
  lease_until: number | null;
  version: string;
  calls: number;
  streams: number;
  gone_at: number | null;
}

const recordFromRow = (row: NodeRow): NodeRecord => ({
  id: row.id,
  name: row.name,
  url: row.url,
  state: row.state,
  startedAt: row.started_at,
  beatAt: row.beat_at,
  leaseUntil: row.lease_until,
  version: row.version,
  calls: row.calls,
  streams: row.streams,
  goneAt: row.gone_at,
});

export function nodeCommands(sql: Sql) {
  const insert = sql.prepare(`
    INSERT INTO nodes (name, url, version, protocol, schema_version, state, started_at, beat_at,
      lease_until)
    VALUES (@name, @url, @version, @protocol, @schemaVersion, 'live', @now, @now, @leaseUntil)`);
  const buryOthers = sql.prepare(`
    UPDATE nodes SET state = 'gone', gone_at = @now WHERE state <> 'gone'`);
  const buryBefore = sql.prepare(`
    UPDATE nodes SET state = 'gone', gone_at = @now WHERE id = @before AND state <> 'gone'`);
  const forget = sql.prepare("DELETE FROM nodes WHERE recovered_at < @before");
  return {
    "nodes.join": async (
      { isAlone, before, ...args }: NewNode & {
        version: string; schemaVersion: number; isAlone: boolean; leaseUntil: Instant | null;
        now: Instant;
      },
    ): Promise<number> => {
      const { now } = args;
      if (isAlone) await buryOthers.run({ now });
      if (before !== undefined) await buryBefore.run({ before, now });
      await forget.run({ before: now - KEPT_MICROS });
      return insert.insert(args);
    },
    ...lifeCommands(sql),
    ...deathCommands(sql),
  };
}

function lifeCommands(sql: Sql) {
  const beat = sql.prepare(`
    UPDATE nodes SET beat_at = @now, lease_until = @leaseUntil, state = @state, calls = @calls,
      streams = @streams
    WHERE id = @nodeId AND state <> 'gone'`);
  const take = sql.prepare(`
    INSERT INTO leases (name, node_id) VALUES (@name, @nodeId)
    ON CONFLICT (name) DO UPDATE SET node_id = excluded.node_id
    WHERE leases.node_id = excluded.node_id OR ${isFree("leases.node_id")}`);
  const giveBack = sql.prepare("DELETE FROM leases WHERE name = @name AND node_id = @nodeId");
  return {
    "nodes.beat": async (
      args: AsNode<Parameters<NodeStore["beat"]>[0]>,
    ): Promise<boolean> => (await beat.run(args)).changes > 0,
    "nodes.takeLease": async (args: AsNode<{ name: LeaseName }>): Promise<boolean> =>
      (await take.run(args)).changes > 0,
    "nodes.giveLeaseBack": async (args: AsNode<{ name: LeaseName }>): Promise<void> => {
      await giveBack.run(args);
    },
  };
}

function deathCommands(sql: Sql) {
  const bury = sql.prepare(`
    UPDATE nodes SET state = 'gone', gone_at = @now
    WHERE id = @deadId AND state <> 'gone' AND beat_at = @beatAt`);
  const leave = sql.prepare(
    "UPDATE nodes SET state = 'gone', gone_at = @now WHERE id = @nodeId AND state <> 'gone'");
  const recovered = sql.prepare(`
    UPDATE nodes SET recovered_at = @now
    WHERE id = @deadId AND state = 'gone' AND recovered_at IS NULL`);
  return {
    /** False: the node has beaten since it was read, or another node buried it first. */
    "nodes.bury": async (
      args: { deadId: number; beatAt: Instant; now: Instant },
    ): Promise<boolean> => (await bury.run(args)).changes > 0,
    "nodes.leave": async (args: AsNode<{ now: Instant }>): Promise<void> => {
      await leave.run(args);
    },
    "nodes.recovered": async (
      { deadIds, now }: { deadIds: number[]; now: Instant },
    ): Promise<void> => {
      for (const deadId of deadIds) await recovered.run({ deadId, now });
    },
  };
}

export function createNodeStore(reader: Reader, writer: WriterOf<typeof nodeCommands>): NodeStore {
  const clock = reader.prepare<object, { now: Instant }>(`SELECT ${reader.dialect.clock} AS now`);
  const list = reader.prepare<object, NodeRow>(`
    SELECT id, name, url, state, started_at, beat_at, lease_until, version, calls, streams,
      gone_at
    FROM nodes WHERE recovered_at IS NULL ORDER BY id`);
  const leases = reader.prepare<object, { name: string; nodeId: number }>(
    'SELECT name, node_id AS "nodeId" FROM leases ORDER BY name');
  const isAlone = reader.engine === "sqlite";
  const now = async (): Promise<Instant> => (await clock.one({})).now;
  return {
    isAlone,
    clock: now,
    join: async (self) => {
      const joined = await now();
      return writer.write("nodes.join", {
        ...self, isAlone, now: joined, version: VERSION,
        schemaVersion: shippedMigrations(reader.engine).at(-1)?.version ?? 0,
        leaseUntil: isAlone ? null : joined + LIMITS.nodeLeaseMs * 1000,
      });
    },
    list: async () => (await list.all({})).map(recordFromRow),
    leases: async () => await leases.all({}),
    ...nodeFigures(reader),
    ...writes(writer, "nodes", "beat", "bury", "leave", "recovered"),
    takeLease: (name) => writer.write("nodes.takeLease", { name }),
    giveLeaseBack: (name) => writer.write("nodes.giveLeaseBack", { name }),
  };
}
