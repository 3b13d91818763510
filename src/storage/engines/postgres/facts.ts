// Facts about the database as a whole that every process must agree on: the secret its sealed
// values are encrypted with, the name its nodes find each other by, and the state of a move into
// it. Checked by server.ts, which also enters missing facts; moves enter theirs (arriving.ts).
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
    /** Enters the value unless there is one already. */
    enter: async (name: Name, value: string): Promise<void> => {
      await enter.run({ name, value });
    },
    remove: async (name: Name): Promise<void> => {
      await remove.run({ name });
    },
  };
}

/** Changes the cluster's name, unless a living node goes by the present one. */
const RENAME = `
  UPDATE facts SET value = @cluster WHERE name = 'cluster' AND NOT EXISTS (
    SELECT 1 FROM nodes WHERE state <> 'gone' AND lease_until > @now)`;

/** Why a process may not use the database, as one sentence; null: it may. */
export async function problemOfFacts(
  sql: Sql, { named, shared }: { named: string; shared: Shared | null },
): Promise<string | null> {
  const facts = factsOf(sql);
  const { moving } = await facts.read();
  if (moving !== undefined) {
    return `a move into the database of ${named} began at ${moving} and is not complete: wait`
      + " for it, or run parley move again";
  }
  if (shared === null) return null;
  await facts.enter("secret", shared.secretMark);
  await facts.enter("cluster", shared.cluster);
  const { now } = await sql.prepare<object, { now: Instant }>(
    `SELECT ${sql.dialect.clock} AS now`).one({});
  await sql.prepare(RENAME).run({ cluster: shared.cluster, now });
  const { secret, cluster } = await facts.read();
  if (secret !== shared.secretMark) {
    return `PARLEY_SECRET is not the one the database of ${named} was created with: all nodes`
      + " need the same secret";
  }
  return cluster === shared.cluster
    ? null
    : `the other nodes of the database of ${named} have PARLEY_CLUSTER=${cluster}, this one has`
      + ` ${shared.cluster}: use the same on all nodes`;
}
