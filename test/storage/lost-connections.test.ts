// What PostgreSQL's engine owes when connections are lost: nothing that was answered is lost, and
// nothing happens twice. Longer in `npm run prove`.
import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { auditAccount } from "#features/accounts/money/ledger.ts";
import type { AssistantSettings } from "#features/assistants/settings.ts";
import type { Conversation } from "#features/conversations/records.ts";
import { StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { createSystem, utcDay, wait, type System } from "#core/system.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import type { Storage } from "#storage/storage.ts";
import { askUntil } from "#support/asking.ts";
import { createWorld, system as world } from "#support/databases/contract-world.ts";
import { startCuttingProxy } from "#support/databases/cutting-proxy.ts";
import { databaseAt, withoutPostgres, type TestDatabase } from "#support/engines.ts";
import { IS_PROOF } from "#support/proof.ts";

const STORM_MS = IS_PROOF ? 120_000 : 6000;
/** With so much of each a short storm is over, on a quick machine; without the least it goes on. */
const ENOUGH = { answered: 200, ended: 40, cut: 2 };
const LEAST = { answered: 50, ended: 10, cut: 1 };
const STORM_MS_MAX = 10 * STORM_MS;
/** Sessions that are ended sooner come to no COMMIT. */
const END_EVERY_MS = 60;
const PRICE = 10_000;
const system = createSystem();
const throughProxy = (port: number, name: string): string =>
  `postgres://parley@127.0.0.1:${port}/${name}?sslmode=disable`;

/** Goes on asking while the database is unreachable. */
async function sure<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof StorageFailure)) throw error;
    }
  }
}

async function newConversation(
  storage: Storage, accountId: number,
): Promise<Conversation> {
  const now = system.now();
  const uuid = system.uuid();
  const assistant = await storage.assistants.create({
    uuid, accountId, now, settings: {} as AssistantSettings, assistantsMax: 99,
    columns: {
      name: "A", type: "inbound", status: "active", mode: "pipeline", folderId: null,
      phoneNumberId: null, labelIds: [],
    },
  });
  assert.ok(assistant.kind === "created");
  const created = await storage.conversations.create({
    uuid: system.uuid(), accountId, now, type: "widget", variables: {}, initialMessage: "",
    externalIdentifier: null, visitor: null, priceMicros: 0, inactivityMinutes: 30,
    dailyCapMicros: null, day: utcDay(now), assistant: { id: assistant.assistantId, uuid },
  });
  assert.ok(created.kind === "created");
  return created.conversation;
}

/** Sends under keys until it is over, and adds those that were answered. */
async function converse(
  storage: Storage, conversation: Conversation, answered: string[], isOver: () => boolean,
): Promise<void> {
  for (let count = 0; !isOver(); count += 1) {
    const key = `k${count}`;
    const now = system.now();
    // A begin that happened and was not heard of is `running` when it is asked again.
    const begun = await sure(() => storage.conversations.beginTurn({
      accountId: conversation.accountId, conversationUuid: conversation.uuid, text: key,
      idempotencyKey: key, requestHash: key, messagePriceMicros: PRICE, dailyCapMicros: null,
      day: utcDay(now), messagesMax: 1_000_000, now,
    }));
    assert.ok(begun.kind === "started", begun.kind);
    await sure(() => storage.conversations.completeTurn({
      turnId: begun.turnId, conversation, text: `to ${key}`, functionCalls: [], stopped: false,
      truncated: false, usage: null, ends: false, now: system.now(),
    }));
    answered.push(key);
  }
}

async function checkBooks(storage: Storage): Promise<void> {
  await storage.ledger.audit(async (totals, entries, openMicros) => {
    assert.deepEqual(await auditAccount(totals, entries, openMicros), []);
  });
  assert.deepEqual(await storage.ledger.strayReferences(), []);
}

test("[SO23] with connections cut after COMMIT and sessions ended, each answered write is there once", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`storm ${process.pid}`, "durable");
  const proxy = await startCuttingProxy(database.port, 5);
  const url = throughProxy(proxy.port, database.name);
  const storage = await openPostgres({ url, writesMax: 10_000 });
  const conversations: Conversation[] = [];
  for (let count = 0; count < 8; count += 1) {
    const now = system.now();
    const { id: accountId } = await storage.accounts.createAccount(
      { name: "A", email: "", plan: "p", now });
    await storage.accounts.credit({
      accountId, amountMicros: 100_000 * PRICE, reference: `first:${accountId}`, now,
    });
    for (let own = 0; own < 3; own += 1) {
      conversations.push(await newConversation(storage, accountId));
    }
  }
  const begunMs = system.monotonicMs();
  const answered = conversations.map((): string[] => []);
  let ended = 0;
  const hasHad = (amount: typeof ENOUGH): boolean => answered.flat().length >= amount.answered
    && ended >= amount.ended && proxy.cuts() >= amount.cut;
  const isOver = (): boolean => {
    const lastedMs = system.monotonicMs() - begunMs;
    if (lastedMs > STORM_MS) return hasHad(LEAST) || lastedMs > STORM_MS_MAX;
    return !IS_PROOF && hasHad(ENOUGH);
  };
  const end = async (): Promise<void> => {
    while (!isOver()) {
      const rows = await database.query<{ done: boolean }>(`
        SELECT pg_terminate_backend(pid) AS done FROM pg_stat_activity
        WHERE datname = $1 AND application_name LIKE 'parley %' ORDER BY random() LIMIT 1`,
      [database.name]);
      ended += rows.length;
      await wait(system, END_EVERY_MS);
    }
  };
  await Promise.all([end(), ...conversations.map((conversation, index) =>
    converse(storage, conversation, answered[index]!, isOver))]);
  assert.ok(hasHad(LEAST),
    `${answered.flat().length} answered, ${ended} ended, ${proxy.cuts()} cut`);
  await sure(() => checkBooks(storage));
  for (const [index, conversation] of conversations.entries()) {
    const history = await sure(() => storage.conversations.history(conversation.id));
    assert.deepEqual(history.messages.map(({ content }) => content),
      answered[index]?.flatMap((key) => [key, `to ${key}`]));
    const events = await sure(() => storage.events.ofConversation(conversation.uuid, 0, 100_000));
    assert.deepEqual(events.map(({ sequence }) => sequence), events.map((_, at) => at + 1));
  }
  for (const accountId of new Set(conversations.map((one) => one.accountId))) {
    const events = await sure(() => storage.events.ofAccount(accountId, 0, 100_000));
    assert.deepEqual(
      events.map(({ accountSequence }) => accountSequence), events.map((_, at) => at + 1));
  }
  await storage.close();
  await proxy.close();
  await database.drop();
});

test("[SO24][SO60] without the database a change is refused after 5 s and then at once; ends of replies and purchases wait and are stored", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`reach ${process.pid}`);
  const proxy = await startCuttingProxy(database.port);
  const url = throughProxy(proxy.port, database.name);
  const storage = await openPostgres({ url, writesMax: 100, mayForget: true });
  const now = system.now();
  const { id: accountId } = await storage.accounts.createAccount(
    { name: "A", email: "", plan: "p", now });
  await storage.accounts.credit({ accountId, amountMicros: PRICE, reference: "r", now });
  const conversation = await newConversation(storage, accountId);
  const begun = await storage.conversations.beginTurn({
    accountId, conversationUuid: conversation.uuid, text: "x", idempotencyKey: null,
    requestHash: "", messagePriceMicros: PRICE, dailyCapMicros: null, day: utcDay(now),
    messagesMax: 100, now,
  });
  assert.ok(begun.kind === "started");
  const uuid = system.uuid();
  const ordered = await storage.phoneNumbers.order({
    uuid, accountId, idempotencyKey: null, phoneNumber: "+15550101111", countryCode: "US",
    smsCapable: true, region: null, provider: "p", priceMicros: 0, now,
  });
  assert.equal(ordered.kind, "ordered");
  assert.equal(storage.failure(), null);
  proxy.shut();
  const startedMs = system.monotonicMs();
  const completed = storage.conversations.completeTurn({
    turnId: begun.turnId, conversation, text: "y", functionCalls: [], stopped: false,
    truncated: false, usage: null, ends: false, now,
  });
  const bought = storage.phoneNumbers.complete({ accountId, uuid, sid: "PN1", now });
  await assert.rejects(storage.accounts.setPlan({ accountId, plan: "q" }), StorageFailure);
  const waitedMs = system.monotonicMs() - startedMs;
  assert.ok(waitedMs > 4000 && waitedMs < 9000, String(waitedMs));
  // The loss was noticed a moment after the change was asked for.
  await askUntil(() => storage.failure(), (failure) => failure instanceof StorageFailure);
  await assert.rejects(storage.accounts.listAccounts(), StorageFailure);
  proxy.open();
  assert.equal((await completed).length, 2);
  assert.equal((await bought).length, 1);
  assert.equal((await storage.phoneNumbers.findPurchase(uuid))?.state, "completed");
  assert.equal(storage.failure(), null);
  assert.equal(await storage.accounts.setPlan({ accountId, plan: "q" }), true);
  await checkBooks(storage);
  await storage.close();
  await proxy.close();
  await database.drop();
});

test("[SO58] ends wait for an absent database without limit, and are stored in order", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`long away ${process.pid}`);
  const proxy = await startCuttingProxy(database.port);
  const url = throughProxy(proxy.port, database.name);
  // While it is away, a second is a quarter of a minute.
  let [goneMs, backMs] = [Infinity, Infinity];
  const awayMs = (): number => Math.max(0, Math.min(system.monotonicMs(), backMs) - goneMs);
  const hurried: System = {
    ...system, monotonicMs: () => system.monotonicMs() + 14 * awayMs(),
    after: (ms, run) => system.after(proxy.isShut() ? ms / 15 : ms, run),
  };
  const storage = await openPostgres({ url, writesMax: 8, mayForget: true, system: hurried });
  const { newCall, started, complete, said, money, ...make } = createWorld(storage);
  const talk = await make.newConversation(1e6);
  const { accountId } = talk;
  const [callId, unheardId, beyondId] = [
    await newCall(talk), await newCall(talk), await newCall(talk),
  ];
  const { turnId } = await started(talk);
  const now = world.now();
  const ended: string[] = [];
  const noted = (name: string) => (): void => void ended.push(name);
  const end = (id: number) => storage.calls.end({
    accountId, callId: id, now, finalStatus: "completed", reason: "completed", turns: [],
    hasRecording: false,
  } as never);
  goneMs = system.monotonicMs();
  proxy.shut();
  const ends = Promise.all([
    complete(turnId, talk).then(noted("reply")),
    storage.calls.change({ accountId, callId, now, to: "in-progress" } as never)
      .then(noted("start")),
    end(callId).then(noted("end")),
  ]);
  // An account has half of the queue, and these are more.
  const later = Promise.all([unheardId, beyondId].map((id) =>
    storage.calls.change({ accountId, callId: id, now, to: "failed" } as never)));
  // Longer than ends have ever waited, and than a database takes to be another one's.
  await wait(system, 3000);
  assert.deepEqual(ended, []);
  backMs = system.monotonicMs();
  proxy.open();
  await Promise.all([ends, later]);
  assert.deepEqual(ended, ["reply", "start", "end"]);
  await sure(() => checkBooks(storage));
  assert.deepEqual((await said(talk)).slice(-1), ["At nine."]);
  const statuses = await Promise.all([callId, unheardId, beyondId].map(async (id) =>
    (await storage.calls.find(accountId, id))?.status));
  assert.deepEqual(statuses, ["ended", "failed", "failed"]);
  assert.equal((await money(accountId))[1], 0);
  await storage.close();
  await proxy.close();
  await database.drop();
});

/** The sessions of a purpose that wait for somebody's lock. */
const waiting = async (database: TestDatabase, purpose: string): Promise<number[]> =>
  (await database.query<{ pid: number }>(`
    SELECT pid FROM pg_stat_activity
    WHERE datname = $1 AND application_name = $2 AND wait_event_type = 'Lock'`,
  [database.name, purpose])).map(({ pid }) => pid);

test("[SO43] an unanswered COMMIT is queried until the database knows its outcome, whatever errors come", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`unheard ${process.pid}`);
  await database.query(`ALTER DATABASE ${database.name} SET search_path = public, pg_catalog`);
  await database.query("CREATE SEQUENCE asked");
  await database.query(`
    CREATE FUNCTION public.pg_xact_status(xid8) RETURNS TEXT LANGUAGE plpgsql AS $$
    DECLARE number BIGINT := nextval('asked');
    BEGIN
      IF number = 1 THEN RAISE 'it took too long' USING ERRCODE = '57014'; END IF;
      IF number = 2 THEN RAISE 'out of memory' USING ERRCODE = '53200'; END IF;
      RETURN pg_catalog.pg_xact_status($1);
    END $$`);
  const proxy = await startCuttingProxy(database.port);
  const storage = await openPostgres({
    url: throughProxy(proxy.port, database.name), writesMax: 100, mayForget: true,
  });
  proxy.cutNext();
  const { id } = await storage.accounts.createAccount(
    { name: "A", email: "", plan: "p", now: system.now() });
  assert.equal(proxy.cuts(), 1);
  assert.deepEqual((await storage.accounts.listAccounts()).map((account) => account.id), [id]);
  await storage.close();
  await proxy.close();
  await database.drop();
});

test("[SO59] a COMMIT cut off before, during or after its answer moves money once", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`cut ${process.pid}`);
  const proxy = await startCuttingProxy(database.port);
  const url = throughProxy(proxy.port, database.name);
  const storage = await openPostgres({ url, writesMax: 100, mayForget: true });
  const { started, complete, said, money, ...make } = createWorld(storage);
  const talk = await make.newConversation(1e6);
  for (const [index, at] of (["unsent", "sent", "answered"] as const).entries()) {
    proxy.cutNext(at);
    const { turnId } = await started(talk);
    assert.deepEqual(await money(talk.accountId), [1e6 - index * PRICE, PRICE], at);
    proxy.cutNext(at);
    await complete(turnId, talk);
    assert.deepEqual(await money(talk.accountId), [1e6 - (index + 1) * PRICE, 0], at);
    assert.equal(proxy.cuts(), 2 * index + 2);
  }
  assert.equal((await said(talk)).length, 6);
  await checkBooks(storage);
  await storage.close();
  await proxy.close();
  await database.drop();
});

test("[SO44] a lock that timed out is waited for again, also by single changes", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`waits ${process.pid}`);
  const storage = await openPostgres({ url: database.url, writesMax: 100, mayForget: true });
  const now = system.now();
  const { id: accountId } = await storage.accounts.createAccount(
    { name: "A", email: "", plan: "p", now });
  const conversation = await newConversation(storage, accountId);
  const strangers = [1, 2].map(() =>
    new pg.Client({ connectionString: database.url, application_name: "stranger" }));
  await Promise.all(strangers.map((client) => client.connect()));
  const [first, second] = strangers as [pg.Client, pg.Client];
  await first.query("BEGIN");
  await first.query("SELECT 1 FROM accounts WHERE id = $1 FOR UPDATE", [accountId]);
  const kept = storage.accounts.setPlan({ accountId, plan: "q" });
  const refused = storage.conversations.completeTurn({
    turnId: 999, conversation, text: "", functionCalls: [], stopped: false, truncated: false,
    usage: null, ends: false, now,
  });
  const both = Promise.allSettled([kept, refused]);
  const isOne = ({ length }: unknown[]): boolean => length === 1;
  await askUntil(() => waiting(database, "parley writes"), isOne);
  // Next after the transaction that fails with the second change, so before the one that follows.
  const locked = second.query("SELECT pg_advisory_lock(7301, $1)", [accountId]);
  await askUntil(() => waiting(database, "stranger"), isOne);
  await first.query("ROLLBACK");
  await locked;
  const [pid] = await askUntil(() => waiting(database, "parley writes"), isOne);
  await database.query("SELECT pg_cancel_backend($1)", [pid]);
  await Promise.all(strangers.map((client) => client.end()));
  const [one, other] = await both;
  assert.deepEqual(one, { status: "fulfilled", value: true });
  assert.match(String(other.status === "rejected" && other.reason), /turn 999 is not open/);
  await storage.close();
  await database.drop();
});

test("[SO45] connections the server refuses block neither reads nor writes over the existing ones", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`full ${process.pid}`);
  const role = `crowd_${process.pid}`;
  for (const line of [
    `CREATE ROLE ${role} LOGIN`, `GRANT ALL ON SCHEMA public TO ${role}`,
    `GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`,
    `GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ${role}`,
  ]) await database.query(line);
  const storage = await openPostgres({
    url: database.url.replace("parley@", `${role}@`), writesMax: 100, mayForget: true,
  });
  const accounts = await Promise.all(Array.from({ length: 8 }, () =>
    storage.accounts.createAccount({ name: "A", email: "", plan: "p", now: system.now() })));
  const sessions = async (purpose: string): Promise<number[]> =>
    (await database.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE usename = $1 AND application_name = $2 AND state = 'idle'",
      [role, `parley ${purpose}`])).map(({ pid }) => pid);
  // All are there, with those of the beats: of none that is ended below was it the only one.
  for (const [purpose, count] of [
    ["writes", LIMITS.databaseWriters + 1], ["reads", LIMITS.databaseReaders + 1],
    ["snapshots", LIMITS.databaseSnapshots],
  ] as const) await askUntil(() => sessions(purpose), ({ length }) => length === count);
  await database.query(`ALTER ROLE ${role} CONNECTION LIMIT 1 NOLOGIN`);
  for (const purpose of ["writes", "reads", "snapshots"]) {
    const [pid] = await sessions(purpose);
    await database.query("SELECT pg_terminate_backend($1)", [pid]);
  }
  const untilMs = system.monotonicMs() + LIMITS.databaseGoneMs + 2000;
  // Refused for another reason at first, then for want of room.
  const relent = wait(system, 1000).then(() => database.query(`ALTER ROLE ${role} LOGIN`));
  for (let round = 0; system.monotonicMs() < untilMs; round += 1) {
    const set = await Promise.all(accounts.map(({ id: accountId }) =>
      storage.accounts.setPlan({ accountId, plan: `p${round}` })));
    assert.ok(set.every(Boolean));
    assert.equal((await storage.accounts.listAccounts()).length, accounts.length);
    await Promise.all(accounts.map(({ id }) => storage.calls.liveSnapshot(id)));
    assert.equal(storage.failure(), null);
    await wait(system, 100);
  }
  await relent;
  // Nobody is there any more: from now on it counts.
  await database.query(`ALTER ROLE ${role} CONNECTION LIMIT 0`);
  await database.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [role]);
  await askUntil(() => storage.failure(), (failure) => failure instanceof StorageFailure);
  await storage.close();
  await database.drop();
});

test("[ND81] a read blocked by a locked table is refused as when the database is away, in a snapshot too", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`locked ${process.pid}`);
  const storage = await openPostgres({ url: database.url, writesMax: 100, mayForget: true });
  const lock = new pg.Client({ connectionString: database.url });
  await lock.connect();
  await lock.query("BEGIN; LOCK TABLE accounts, calls IN ACCESS EXCLUSIVE MODE");
  const refused = (read: Promise<unknown>) => assert.rejects(read, StorageFailure);
  const reads = [
    refused(storage.accounts.listAccounts()), refused(storage.calls.list(1, {}, 0, 1)),
  ];
  const kept = await askUntil(() => database.query<{ pid: number }>(`
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'parley %'
      AND wait_event_type = 'Lock'`), ({ length }) => length === reads.length);
  // As the bound of how long a statement may take does.
  for (const { pid } of kept) await database.query("SELECT pg_cancel_backend($1)", [pid]);
  await Promise.all(reads);
  await lock.end();
  assert.deepEqual(await storage.accounts.listAccounts(), []);
  await storage.close();
  await database.drop();
});
