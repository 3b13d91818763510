// What PostgreSQL's engine owes while commits wait for a synchronous standby that does not come.
import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageFailure } from "#core/faults.ts";
import { createSystem } from "#core/system.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { askUntil } from "#support/asking.ts";
import { startCuttingProxy } from "#support/databases/cutting-proxy.ts";
import { startOwnPostgres } from "#support/databases/own-postgres.ts";
import { withoutPostgres } from "#support/engines.ts";

const system = createSystem();

test("[ND87] while commits wait for a synchronous standby that is gone, what begins is refused; what waits is stored once it need not, and a stop does not wait for it", {
  skip: withoutPostgres,
}, async (context) => {
  const own = await startOwnPostgres();
  context.after(() => own.close());
  const proxy = await startCuttingProxy(own.port);
  context.after(() => proxy.close());
  const storage = await openPostgres({
    url: own.url.replace(String(own.port), String(proxy.port)), writesMax: 100,
  });
  const [first, second] = await Promise.all(["A", "B"].map((name) =>
    storage.accounts.createAccount({ name, email: "", plan: "p", now: system.now() })));
  const change = ({ id: accountId }: { id: number }, plan: string): Promise<boolean> =>
    storage.accounts.setPlan({ accountId, plan });
  const hang = async (plan: string): Promise<{ hanging: Promise<boolean> }> => {
    await own.set("synchronous_standby_names", "nobody");
    const cuts = proxy.cuts();
    proxy.cutNext("sent");
    const hanging = change(first!, plan);
    await askUntil(proxy.cuts, (now) => now > cuts);
    return { hanging };
  };

  const { hanging } = await hang("q");
  const behind = assert.rejects(change(first!, "behind"), StorageFailure);
  await askUntil(storage.failure, (failure) => failure !== null);
  await behind;
  await assert.rejects(change(second!, "beside"), /does not finish a commit/);
  assert.ok(storage.isRefusing());
  assert.equal((await storage.accounts.listAccounts()).length, 2);
  await own.query("ALTER SYSTEM RESET synchronous_standby_names");
  await own.query("SELECT pg_reload_conf()");
  assert.ok(await hanging);
  assert.equal(storage.failure(), null);
  assert.ok(await change(second!, "beside"));

  const { hanging: left } = await hang("r");
  await Promise.all([assert.rejects(left, StorageFailure), storage.close()]);
});
