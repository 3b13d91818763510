// PostgreSQL has no room for the connections of writes, while those of reads are still there, or
// the other way round.
import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageFailure } from "#core/faults.ts";
import { createSystem } from "#core/system.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { askUntil } from "#support/asking.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";

test("[SO211] a server that takes no connection for writes, or none for reads, is reported, though the other goes on", {
  skip: withoutPostgres,
}, async () => {
  const system = createSystem();
  const database = await databaseAt(`crowded ${process.pid}`);
  const role = `crowded_${process.pid}`;
  for (const line of [
    `CREATE ROLE ${role} LOGIN`, `GRANT ALL ON SCHEMA public TO ${role}`,
    `GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`,
    `GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ${role}`,
  ]) await database.query(line);
  const storage = await openPostgres({
    url: database.url.replace("parley@", `${role}@`), writesMax: 100, mayForget: true, system,
  });
  const create = () =>
    storage.accounts.createAccount({ name: "A", email: "", plan: "p", now: system.now() });
  await create();
  const crowdOut = async (purpose: string): Promise<void> => {
    await database.query(`ALTER ROLE ${role} CONNECTION LIMIT 1`);
    await database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE usename = $1 AND application_name = $2`, [role, `parley ${purpose}`]);
  };
  await crowdOut("writes");
  // Reads keep proving that the database can be reached.
  const failure = async () => {
    assert.equal((await storage.accounts.listAccounts()).length, 1);
    return storage.failure();
  };
  await askUntil(failure, (one) => one instanceof StorageFailure);
  await assert.rejects(create(), StorageFailure);
  await database.query(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
  await askUntil(failure, (one) => one === null);
  await create();
  for (const purpose of ["reads", "snapshots"]) {
    await crowdOut(purpose);
    // Writes keep proving that the database can be reached.
    const canRead = async () => {
      await create();
      return storage.canRead();
    };
    await askUntil(canRead, (can) => !can);
    assert.equal(storage.failure(), null);
    await database.query(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
    await askUntil(canRead, (can) => can);
  }
  await storage.close();
  await database.drop();
});
