// A database of a durable PostgreSQL in which nothing was ever created, not even the schema.
import { databaseAt } from "#support/engines.ts";

type Database = Awaited<ReturnType<typeof databaseAt>>;

export interface VirginDatabase extends Pick<Database, "port"> {
  url: string;
  query: Database["query"];
  drop(): Promise<void>;
}

/** `place`: a name of its own for each. */
export async function virginDatabase(place: string): Promise<VirginDatabase> {
  const database = await databaseAt(`${place} ${process.pid}`, "durable");
  await database.query("DROP SCHEMA public CASCADE");
  await database.query("CREATE SCHEMA public");
  return overTcp(database);
}

/** The same with the schema, as a first start leaves it, and nothing in it. */
export const emptyDatabase = async (place: string): Promise<VirginDatabase> =>
  overTcp(await databaseAt(`${place} ${process.pid}`, "durable"));

function overTcp(database: Database): VirginDatabase {
  return {
    url: `postgres://parley@127.0.0.1:${database.port}/${database.name}`,
    port: database.port, query: database.query, drop: database.drop,
  };
}
