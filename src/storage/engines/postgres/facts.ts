// What holds for a database as a whole and every process has to agree on: the secret its sealed
// values open with, the name its nodes find each other by, and whether a move into it has ended.
// Looked at by server.ts, entered by whoever is first and by a move (arriving.ts).
import type { Instant } from "#core/system.ts";
import type { Sql } from "#storage/sql.ts";

/** What the nodes of one database have in common, as each is set up. */
export interface Shared {
  /** Recognises the secret, without containing it. */
  secretMark: string;
  /** PARLEY_CLUSTER. */
  cluster: string;
}

type Name = "secret" | "cluster" | "moving" | "moved";

export function factsOf(sql: Sql) {
  const all = sql.prepare<object, { name: Name; value: string }>("SELECT name, value FROM facts");
  const enter = sql.prepare(`
    INSERT INTO facts (name, value) VALUES (@name, @value) ON CONFLICT (name) DO NOTHING`);
  const remove = sql.prepare("DELETE FROM facts WHERE name = @name");
  return {
    read: async (): Promise<Partial<Record<Name, string>>> => Object.fromEntries(
      (await all.all({})).map(({ name, value }) => [name, value])),
    /** What somebody else has entered stays. */
    enter: async (name: Name, value: string): Promise<void> => {
      await enter.run({ name, value });
    },
    remove: async (name: Name): Promise<void> => {
      await remove.run({ name });
    },
  };
}

/** Entered where nobody else who lives goes by another name. */
const RENAME = `
  UPDATE facts SET value = @cluster WHERE name = 'cluster' AND NOT EXISTS (
    SELECT 1 FROM nodes WHERE state <> 'gone' AND lease_until > @now)`;

/** Why a process may not go on with the database, as one sentence; null: it may. */
export async function problemOfFacts(
  sql: Sql, { named, shared }: { named: string; shared: Shared | null },
): Promise<string | null> {
  const facts = factsOf(sql);
  const { moving } = await facts.read();
  if (moving !== undefined) {
    return `a move into the database of ${named} began at ${moving} and has not ended: let it end,`
      + " or run parley move again";
  }
  if (shared === null) return null;
  await facts.enter("secret", shared.secretMark);
  await facts.enter("cluster", shared.cluster);
  const { now } = await sql.prepare<object, { now: Instant }>(
    `SELECT ${sql.dialect.clock} AS now`).one({});
  await sql.prepare(RENAME).run({ cluster: shared.cluster, now });
  const { secret, cluster } = await facts.read();
  if (secret !== shared.secretMark) {
    return `PARLEY_SECRET is not the one that the database of ${named} was begun with: every node`
      + " needs the same";
  }
  return cluster === shared.cluster
    ? null
    : `other nodes of the database of ${named} are the cluster ${cluster}, and PARLEY_CLUSTER is`
      + ` ${shared.cluster}: they would not hear each other`;
}
