// The commands that work on either engine, over PostgreSQL; and what doctor says of its nodes.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { askUntil } from "#support/asking.ts";
import { startOwnPostgres } from "#support/databases/own-postgres.ts";
import { virginDatabase } from "#support/databases/virgin-database.ts";
import { withoutPostgres } from "#support/engines.ts";
import { startNats, withoutNats } from "#support/nodes/nats.ts";
import { json, parley, type Ran } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";

const skip = withoutPostgres;
const dataDir = testDataDir();
after(() => rmSync(dataDir, { recursive: true, force: true }));

test("[CL92] account, key, balance, number and ledger commands work over PostgreSQL as over a file", { skip }, async () => {
  const database = await virginDatabase("commands");
  const run = async (...args: string[]): Promise<Ran> => {
    const ran = await parley(dataDir, args, { PARLEY_DATABASE_URL: database.url });
    assert.equal(ran.code, 0, `${args.join(" ")}: ${ran.err}`);
    return ran;
  };
  const created = json(await run("account", "create", "--name", "A", "--balance", "5.00", "--json"));
  assert.equal(created.account_id, 1);
  assert.match((await run("account", "list")).out, /^account_id .*\n1 +A +\S+ +\$?5\.00/);
  const key = json(await run("key", "create", "--name", "k", "--json"));
  assert.match(String(key.api_key), /^\d+\|/);
  assert.match((await run("key", "list")).out, /k .*read,write/);
  await run("key", "revoke", String(key.key_id));
  assert.doesNotMatch((await run("key", "list")).out, /^\d+ +k /m);
  const twice = ["balance", "add", "2.50", "--reference", "r1", "--json"];
  assert.deepEqual(json(await run(...twice)), { account_id: 1, balance: 7.5, repeated: false });
  assert.deepEqual(json(await run(...twice)), { account_id: 1, balance: 7.5, repeated: true });
  assert.match((await run("balance", "show")).out, /balance +\$?7\.50/);
  const list = join(dataDir, "numbers.txt");
  writeFileSync(list, "+12025550142\n");
  await run("number", "import", list, "--country", "US");
  assert.match((await run("number", "list")).out, /\+12025550142/);
  assert.equal((await run("ledger", "verify")).out, "the ledger is correct: 1 accounts, 2 ledger entries\n");
  await database.query("ALTER TABLE ledger DISABLE TRIGGER ALL");
  await database.query("UPDATE ledger SET amount_micros = amount_micros + 1 WHERE number = 2");
  const wrong = await parley(dataDir, ["ledger", "verify"], { PARLEY_DATABASE_URL: database.url });
  assert.equal(wrong.code, 1, "a changed entry is found");
  await database.drop();
});

interface Findings {
  ok: boolean;
  findings: { check: string; ok: boolean; detail: string }[];
}

test("[CL93][CL222] doctor names nodes with what they own, leases, standbys, the clock and NATS", { skip: skip || withoutNats }, async () => {
  const database = await virginDatabase("doctor");
  const nats = await startNats();
  const env = {
    PARLEY_DATABASE_URL: database.url, PARLEY_NATS_URL: nats.url, PARLEY_FILES_URL: `file://${dataDir}`,
    PARLEY_SECRET: "the one all nodes have",
  };
  const examine = async () => {
    const ran = await parley(dataDir, ["doctor", "--json"], env);
    const { findings } = json(ran) as unknown as Findings;
    return (check: string) => findings.filter((one) => one.check === check);
  };
  const none = await examine();
  assert.deepEqual(none("nodes"), [{ check: "nodes", ok: true, detail: "none running" }]);
  assert.deepEqual(none("standby"), [{ check: "standby", ok: true, detail: "none" }]);
  assert.deepEqual(none("NATS"), [{ check: "NATS", ok: true, detail: "answers" }]);
  assert.deepEqual([none("clock")[0]?.ok, none("secret")[0]?.ok], [true, true]);

  const names = ["live", "drains", "dead"];
  const nodes = await Promise.all(names.map(async (name) => {
    const storage = await openPostgres({ url: database.url, writesMax: 10, isSmall: true });
    await storage.join({ name, url: name === "live" ? "https://one.example" : null, protocol: 1 });
    return storage;
  }));
  const [live, drains, dead] = nodes;
  const now = await live!.nodes.clock();
  const beat = { calls: 2, streams: 7, now };
  const later = now + 600_000_000;
  await live!.nodes.beat({ ...beat, state: "live", leaseUntil: later });
  await drains!.nodes.beat({ ...beat, state: "draining", leaseUntil: later });
  await dead!.nodes.beat({ ...beat, state: "live", leaseUntil: now - 1_000_000 });
  await live!.nodes.takeLease("clock");
  await database.query(`INSERT INTO accounts (id, name, email, plan, created_at) VALUES (1, 'A', '', 'p', 0)`);
  await database.query(`INSERT INTO facts VALUES ('secret', 'another one')`);
  const found = await examine();
  const said = (storage: typeof live) => found(`node ${storage!.nodeId()}`)[0];
  assert.match(said(live)?.detail ?? "", /^live, live, https:\/\/one\.example, version \d\S+, up \d+ s, last seen \d+ s ago, lease for \d+ s more, 2 calls and 7 streams, has the lease clock$/);
  assert.match(said(drains)?.detail ?? "", /^draining, drains, version/);
  assert.deepEqual([said(live)?.ok, said(drains)?.ok, said(dead)?.ok], [true, true, false]);
  assert.match(said(dead)?.detail ?? "", /^dead, dead, /);
  assert.equal(found("secret")[0]?.detail, "not the one the database was created with");
  assert.equal(found("waiting")[0]?.detail, "0 documents, 0 webhooks");
  await nats.kill();
  const [wire] = (await examine())("NATS");
  assert.equal(wire?.ok, false);
  assert.match(wire?.detail ?? "", /^unreachable \(.*refused.*\): messages go through the database$/i);
  for (const storage of nodes) await storage.close();
  await database.drop();
});

test("[CL220] doctor says why a PostgreSQL stores nothing: it is only read, or waits for a standby that is not there", { skip }, async (context) => {
  const own = await startOwnPostgres();
  context.after(() => own.close());
  await (await openPostgres({ url: own.url, writesMax: 10, isSmall: true })).close();
  const changes = async (): Promise<unknown> => {
    const ran = await parley(dataDir, ["doctor", "--json"], { PARLEY_DATABASE_URL: own.url });
    return (json(ran) as unknown as Findings).findings.find(({ check }) => check === "changes");
  };
  assert.equal(await changes(), undefined);
  await own.set("synchronous_standby_names", "nobody");
  const check = "changes";
  assert.deepEqual(await changes(), {
    check, ok: false,
    detail: "not possible: each commit waits for standbys of synchronous_standby_names: 1 needed, 0 there",
  });
  await own.set("default_transaction_read_only", "on");
  assert.deepEqual(await changes(), {
    check, ok: false, detail: "not possible: default_transaction_read_only is on",
  });
});

test("[CL221] doctor says that fewer synchronous standbys are there than each commit waits for", { skip }, async (context) => {
  const own = await startOwnPostgres();
  context.after(() => own.close());
  await (await openPostgres({ url: own.url, writesMax: 10, isSmall: true })).close();
  const standby = await startOwnPostgres({ standbyOf: own });
  context.after(() => standby.close());
  const changes = async (names: string): Promise<string | undefined> => {
    await own.set("synchronous_standby_names", names);
    const state = names.startsWith("ANY") ? "quorum" : "sync";
    await askUntil(
      () => own.query("SELECT FROM pg_stat_replication WHERE sync_state = $1", [state]),
      (rows) => rows.length === 1);
    const ran = await parley(dataDir, ["doctor", "--json"], { PARLEY_DATABASE_URL: own.url });
    const { findings } = json(ran) as unknown as Findings;
    return findings.find(({ check }) => check === "changes")?.detail;
  };
  const tooFew = "not possible: each commit waits for standbys of synchronous_standby_names: "
    + "2 needed, 1 there";
  for (const names of ["ANY 2 (standby, other)", "first 2 (standby, other)", "2(standby, other)"]) {
    assert.equal(await changes(names), tooFew, names);
  }
  for (const names of ["ANY 1 (standby, other)", "standby", "*"]) {
    assert.equal(await changes(names), undefined, names);
  }
});
