// A PostgreSQL with a synchronous standby, reached by an address that stays when the standby takes
// the place of the other one, as with Patroni or a cloud's.
import { askUntil } from "#support/asking.ts";
import type { TestDatabase } from "#support/engines.ts";
import { openFrontDoor } from "#support/pages/front-door.ts";
import { startOwnPostgres, type OwnPostgres } from "./own-postgres.ts";

export interface PostgresPair extends Pick<TestDatabase, "name" | "port" | "query" | "drop"> {
  /** The primary dies at once, with all that it has not written; the standby takes over. */
  failOver(): Promise<void>;
}

/** Adds a standby, for which commits wait from then on. */
async function follow(primary: OwnPostgres): Promise<OwnPostgres> {
  const standby = await startOwnPostgres({ standbyOf: primary });
  await askUntil(
    () => primary.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"),
    ({ length }) => length === 1);
  await primary.set("synchronous_standby_names", "standby");
  return standby;
}

export async function startPostgresPair(): Promise<PostgresPair> {
  let primary = await startOwnPostgres();
  let standby = await follow(primary);
  const door = await openFrontDoor(() => primary.port);
  // Queries and failovers run one after the other.
  let last: Promise<unknown> = Promise.resolve();
  const inLine = <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
  const move = async (): Promise<void> => {
    await primary.stop();
    await standby.query("SELECT pg_promote()");
    await primary.close();
    primary = standby;
    standby = await follow(primary);
  };
  return {
    name: "postgres", port: door.port,
    query: (...asked) => inLine(() => primary.query(...asked)),
    failOver: () => inLine(move),
    drop: async () => {
      await door.close();
      await Promise.all([primary.close(), standby.close()]);
    },
  };
}
