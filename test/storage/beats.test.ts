// That a node lives is stored whatever else waits for the database.
import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { createSystem } from "#core/system.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";

/** More than there are connections of each kind. */
const WAITING = 8;

test("[SO40] over PostgreSQL a node's beat is stored while every reader and writer waits", {
  skip: withoutPostgres,
}, async () => {
  const system = createSystem();
  const database = await databaseAt(`beats ${process.pid}`);
  const storage = await openPostgres({ url: database.url, writesMax: 1000, mayForget: true });
  await storage.join({ name: "n", url: null, protocol: 1 });
  const accountIds: number[] = [];
  for (let number = 0; number < WAITING; number += 1) {
    accountIds.push((await storage.accounts.createAccount(
      { name: "A", email: "", plan: "p", now: system.now() })).id);
  }
  const blocking = new pg.Client({ connectionString: database.url });
  await blocking.connect();
  await blocking.query("BEGIN");
  await blocking.query("LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE");
  let answered = 0;
  const counted = <T>(asked: Promise<T>): Promise<T> => asked.finally(() => (answered += 1));
  const waiting = accountIds.flatMap((accountId) => [
    counted(storage.accounts.findAccount(accountId)),
    counted(storage.accounts.credit({
      accountId, amountMicros: 1, reference: `beats:${accountId}`, now: system.now(),
    })),
  ]);
  const now = await storage.nodes.clock();
  const leaseUntil = now + 30_000_000;
  assert.equal(await storage.nodes.beat({ leaseUntil, state: "live", calls: 0, streams: 0, now }), true);
  assert.deepEqual((await storage.nodes.list()).map(({ beatAt }) => beatAt), [now]);
  assert.equal(answered, 0);
  await blocking.query("COMMIT");
  await blocking.end();
  await Promise.all(waiting);
  await storage.close();
  await database.drop();
});
