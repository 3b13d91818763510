// The ledger over HTTP: entries in pages, and the chain recomputed on demand.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import fc from "fast-check";
import { auditAccount } from "#features/accounts/money/ledger.ts";
import { createStatements } from "#features/accounts/money/statements.ts";
import { openWriter } from "#storage/engines/sqlite/database.ts";
import { readerOver } from "#storage/engines/sqlite/reader.ts";
import { commandsOver, createSql } from "#storage/engines/sqlite/sql.ts";
import { createLedger } from "#storage/accounts/ledger.ts";
import { createLedgerReader, createStatementStore } from "#storage/accounts/ledger-reading.ts";
import { assertLinear } from "#support/growth.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { startTestServer, testDataDir } from "#support/server.ts";

const DAY = 86_400_000_000;
const system = createManualSystem();
const server = await startTestServer({ system });
const dataDir = testDataDir();
const db = openWriter(dataDir, { migrate: true });
const ledger = createLedger(createSql(db));
after(async () => {
  await server.close();
  db.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const list = (key: string, query = "") => server.call("GET", `/user/ledger${query}`, { key });
const verification = (key: string) => server.call("GET", "/user/ledger/verification", { key });
const { accounts } = server.app.features;

interface Entry {
  number: number;
  reference: string;
}
const numbers = (body: { data: Entry[] }): number[] => body.data.map(({ number }) => number);

/** An account of the bare database with so many entries. */
async function newLedger(entries: number): Promise<number> {
  const { id: accountId } = await commandsOver(db)["accounts.create"]({
    name: "A", email: "", plan: "self-hosted", now: system.now(),
  });
  db.exec("BEGIN");
  for (let count = 0; count < entries; count += 1) {
    const kind = count === 0 ? "credit" : "message";
    await ledger.enter({
      accountId, kind, reference: `${kind}:${accountId}.${count}`,
      amountMicros: count === 0 ? 1_000_000_000 : -10_000, now: system.now(),
    });
  }
  db.exec("COMMIT");
  return accountId;
}

test("[BL80] entries are paged newest first, in dollars, each with its balance and hash", async () => {
  const { key, accountId } = await server.newAccount();
  await accounts.credit(accountId, -1_250_000, "taken");
  const { status, body } = await list(key, "?per_page=1");
  assert.equal(status, 200);
  assert.deepEqual([body.total, body.last_page, body.current_page], [2, 2, 1]);
  const [entry] = body.data;
  assert.deepEqual(Object.keys(entry), [
    "number", "kind", "reference", "amount", "balance_after", "created_at", "hash",
  ]);
  const { hash, ...told } = entry;
  assert.match(hash, /^[0-9a-f]{64}$/);
  assert.deepEqual(told, {
    number: 2, kind: "credit", reference: "taken", amount: -1.25, balance_after: 3.75,
    created_at: "2026-01-15T12:00:00.000000Z",
  });
  const next = await fetch(body.next_page_url as string, { headers: { Authorization: `Bearer ${key}` } });
  assert.deepEqual(numbers(await next.json() as never), [1]);
  assert.equal((await server.call("GET", "/user/ledger", { key: null })).status, 401);
});

test("[BL81] kind, reference and days filter the list; invalid filters are refused", async () => {
  const { key, accountId } = await server.newAccount();
  const writing = openWriter(server.dataDir, { migrate: false });
  for (const [day, reference] of ["a_b", "axb", "a_b.1", "a%"].entries()) {
    const now = system.now() + (day + 1) * DAY;
    await createLedger(createSql(writing))
      .enter({ accountId, kind: "credit", reference, amountMicros: 1, now });
  }
  writing.close();
  const cases: [query: string, found: number[]][] = [
    ["", [5, 4, 3, 2, 1]],
    ["?kind=credit&per_page=2&page=2", [3, 2]],
    ["?kind=call", []],
    ["?reference=a_b", [2]],
    ["?reference=a_b*", [4, 2]],
    ["?reference=a%25*", [5]],
    ["?reference=*", [5, 4, 3, 2, 1]],
    ["?reference=nothing", []],
    ["?date_from=2026-01-17&date_to=2026-01-18", [4, 3]],
    ["?date_to=2026-01-15", [1]],
  ];
  for (const [query, found] of cases) {
    const { body } = await list(key, query);
    assert.deepEqual(numbers(body), found, query);
    if (!query.includes("page")) assert.equal(body.total, found.length, query);
  }
  for (const query of ["kind=gift", "date_from=2026-02-30", "per_page=101", "page=0"]) {
    const { status, body } = await list(key, `?${query}`);
    assert.equal(status, 422, query);
    assert.ok(body.errors[query.split("=")[0] ?? ""], query);
  }
});

test("[BL242] a reservation grows, is charged and is released under its own name, apart from others", async () => {
  const [accountId, other] = [await newLedger(1), await newLedger(1)];
  const now = system.now();
  const open = () => db.prepare<[number], { reference: string; amount_micros: number }>(
    "SELECT reference, amount_micros FROM reservations WHERE account_id = ? ORDER BY reference")
    .all(accountId).map(({ reference, amount_micros: micros }) => [reference, micros]);
  const drawn = () => db.prepare<[number], { last: number }>(
    "SELECT event_sequence AS last FROM accounts WHERE id = ?").get(accountId)?.last;
  const before = drawn();
  const reserved = () => db.prepare<[number], { micros: number }>(
    "SELECT reserved_micros AS micros FROM accounts WHERE id = ?").get(accountId)?.micros;
  for (const reference of ["a", "b", "c"]) {
    assert.equal(await ledger.reserve({ accountId, reference, amountMicros: 100, now }), true);
  }
  const extend = (id: number, reference: string) =>
    ledger.extend({ accountId: id, reference, amountMicros: 50 });
  assert.equal(await extend(accountId, "b"), true);
  for (const [id, reference] of [[accountId, "d"], [other, "b"]] as const) {
    // A command that throws undoes what it had set aside.
    db.exec("BEGIN");
    await assert.rejects(async () => extend(id, reference), /nothing is reserved/);
    db.exec("ROLLBACK");
  }
  assert.deepEqual(open(), [["a", 100], ["b", 150], ["c", 100]]);
  assert.equal(drawn(), before, "no number of the account's log is left without an event");
  const post = (id: number, reference: string) =>
    ledger.post({ accountId: id, reference, kind: "call", amountMicros: 120, now });
  assert.equal(await post(other, "b"), null);
  assert.equal(await ledger.release(other, "b"), 0);
  assert.equal((await post(accountId, "b"))?.amountMicros, -120);
  assert.equal(await post(accountId, "b"), null, "it was entered");
  assert.equal(await ledger.release(accountId, "c"), 100);
  assert.deepEqual([open(), reserved()], [[["a", 100]], 100]);
  assert.equal((await post(accountId, "a"))?.amountMicros, -100, "no more than was set aside");
  assert.deepEqual([open(), reserved()], [[], 0]);
});

test("[BL82] another account sees none of it with any filter", async () => {
  const { accountId } = await server.newAccount();
  await accounts.credit(accountId, 1_000_000, "private:1");
  const other = await server.newAccount({ balance: "0" });
  for (const query of ["", "?reference=private:1", "?reference=private*", "?kind=credit"]) {
    const { body } = await list(other.key, query);
    assert.deepEqual([body.data, body.total], [[], 0], query);
  }
  const { body } = await verification(other.key);
  assert.deepEqual([body.ok, body.entries, body.sum], [true, 0, 0]);
});

test("[BL83] a verification agrees with balance and reservations", async () => {
  const { key, accountId } = await server.newAccount();
  await accounts.credit(accountId, -500_000);
  const { status, body } = await verification(key);
  assert.equal(status, 200);
  const { verified_at: at, ...found } = body;
  assert.match(at, /^2026-01-\d\dT12:00:00\.000000Z$/);
  assert.deepEqual(found, {
    ok: true, entries: 2, balance: 4.5, sum: 4.5, reserved: 0, problem: null,
  });
  const writing = openWriter(server.dataDir, { migrate: false });
  writing.prepare("UPDATE accounts SET balance_micros = balance_micros + 1 WHERE id = ?").run(accountId);
  const wrong = await verification(key);
  assert.deepEqual([wrong.body.ok, wrong.body.balance, wrong.body.sum], [false, 4.500001, 4.5]);
  assert.deepEqual(wrong.body.problem, {
    number: null, what: "balance 4500001, ledger sum 4500000",
  });
  writing.close();
});

test("[BL84] verification finds any change to any entry, at that entry", async () => {
  db.exec("DROP TRIGGER ledger_is_never_changed; DROP TRIGGER ledger_is_never_deleted");
  const statements = createStatements({ store: createStatementStore(readerOver(db, db)), system });
  const entries = 12;
  const sets = fc.constantFrom(
    "amount_micros = amount_micros + 1", "balance_after_micros = balance_after_micros - 1",
    "reference = reference || 'x'", "kind = 'call'", "created_at = created_at + 1",
    "hash = lower(hex(randomblob(32)))", "number = 1000", null);
  const which = fc.integer({ min: 1, max: entries });
  await fc.assert(fc.asyncProperty(sets, which, async (set, number) => {
    const accountId = await newLedger(entries);
    assert.equal((await statements.verify(accountId))?.problem, null);
    const where = "WHERE account_id = @accountId AND number = @number";
    db.prepare(set === null ? `DELETE FROM ledger ${where}` : `UPDATE ledger SET ${set} ${where}`)
      .run({ accountId, number });
    const found = await statements.verify(accountId);
    assert.ok(found?.problem, "found");
    const isLastGone = number === entries && set === null;
    assert.equal(found.problem.number, isLastGone ? null : number, found.problem.what);
  }), { numRuns: 60 });
});

test("[BL85] one verification per account runs at a time; concurrent requests share it", async () => {
  const store = createStatementStore(readerOver(db, db));
  let begun = 0;
  const claims = async (accountId: number) => {
    begun += 1;
    return store.claims(accountId);
  };
  const statements = createStatements({ store: { ...store, claims }, system });
  const [one, two] = [await newLedger(3000), await newLedger(2)];
  const asked = [statements.verify(one), statements.verify(two), statements.verify(one)];
  const found = await Promise.all(asked);
  assert.deepEqual(found.map((item) => item?.entries), [3000, 2, 3000]);
  assert.equal(begun, 2);
  assert.equal(found[0], found[2]);
  await statements.verify(one);
  assert.equal(begun, 3, "once it is over, the next one begins anew");
});

test("[BL86] verification yields every thousand entries, and entries made meanwhile do not disturb it", async () => {
  const statements = createStatements({ store: createStatementStore(readerOver(db, db)), system });
  const accountId = await newLedger(5000);
  let turns = 0;
  let isDone = false;
  const tick = (): void => {
    if (isDone) return;
    turns += 1;
    void ledger.enter({
      accountId, kind: "message", reference: `late:${accountId}.${turns}`, amountMicros: -10_000,
      now: system.now(),
    });
    setImmediate(tick);
  };
  setImmediate(tick);
  const found = await statements.verify(accountId);
  isDone = true;
  assert.ok(turns >= 4, `${turns} turns of the event loop`);
  assert.deepEqual([found?.entries, found?.problem], [5000, null]);
  const again = await statements.verify(accountId);
  assert.deepEqual([again?.entries, again?.problem], [5000 + turns, null]);
});

/** The least CPU time that reading this page twenty times took, of a few tries. */
async function costOf(read: () => Promise<unknown>): Promise<number> {
  let least = Infinity;
  for (let tries = 0; tries < 5; tries += 1) {
    const begun = process.cpuUsage();
    for (let reads = 0; reads < 20; reads += 1) await read();
    const { user, system: kernel } = process.cpuUsage(begun);
    least = Math.min(least, user + kernel);
  }
  return least;
}

test("[BL489] the last page of a long ledger, or entries of days long ago, cost little more than the first", async () => {
  const accountId = await newLedger(1000);
  db.exec("BEGIN");
  for (let count = 0; count < 60_000; count += 1) {
    await ledger.enter({
      accountId, kind: "message", reference: `later:${accountId}.${count}`, amountMicros: -10,
      now: system.now() + DAY,
    });
  }
  db.exec("COMMIT");
  const { page } = createStatementStore(readerOver(db, db));
  const early = { to: system.now() + 1 };
  const most = 10 * await costOf(() => page(accountId, {}, 0, 10));
  const last = await costOf(() => page(accountId, {}, 60_990, 10));
  const days = await costOf(() => page(accountId, early, 990, 10));
  assert.ok(last < most && days < most, `${last} and ${days} µs, more than ${most}`);
  const numbersOf = async (filter: object, offset: number): Promise<unknown> => {
    const { items, total } = await page(accountId, filter, offset, 10);
    return [items.map(({ number }) => number), total];
  };
  assert.deepEqual(await numbersOf({}, 60_995), [[5, 4, 3, 2, 1], 61_000]);
  assert.deepEqual(await numbersOf(early, 998), [[2, 1], 1000]);
  assert.deepEqual(await numbersOf({ ...early, kind: "message" }, 998), [[2], 999]);
  assert.deepEqual(await numbersOf({ kind: "message" }, 60_997), [[3, 2], 60_999]);
});

test("[BL490] one entry's reference is found by its name, however many begin like it or do not", async () => {
  const accountId = await newLedger(60_000);
  const { page } = createStatementStore(readerOver(db, db));
  const most = 10 * await costOf(() => page(accountId, {}, 0, 10));
  const found = async (text: string, isPrefix: boolean): Promise<[number[], number]> => {
    const read = () => page(accountId, { reference: { text, isPrefix } }, 0, 10);
    const { items, total } = await read();
    const took = await costOf(read);
    assert.ok(took < most, `${text}: ${took} µs, more than ${most}`);
    return [items.map(({ number }) => number), total];
  };
  assert.deepEqual(await found(`message:${accountId}.1`, false), [[2], 1]);
  assert.deepEqual(await found("message:", false), [[], 0]);
  assert.deepEqual(await found(`credit:${accountId}`, true), [[1], 1]);
  assert.deepEqual(await found("nothing", true), [[], 0]);
});

test("[BL493] the audit of all books reads an account of thousands of entries to the last", async () => {
  const accountId = await newLedger(2500);
  const problems: string[] = [];
  let read = 0;
  await createLedgerReader(readerOver(db, db)).audit(async (totals, entries, openMicros) => {
    if (totals.accountId !== accountId) return;
    read += totals.ledgerEntries;
    problems.push(...await auditAccount(totals, entries, openMicros));
  });
  assert.deepEqual([read, problems], [2500, []]);
});

/** A bare database with so many purchases, the last two wrong. */
async function strayWorld(purchases: number): Promise<() => Promise<string[]>> {
  const folder = testDataDir();
  const own = openWriter(folder, { migrate: true });
  after(() => {
    own.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const entered = createLedger(createSql(own));
  const { id: accountId } = await commandsOver(own)["accounts.create"]({
    name: "A", email: "", plan: "self-hosted", now: system.now(),
  });
  own.prepare(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @purchases)
    INSERT INTO number_purchases (uuid, account_id, phone_number, country_code, sms_capable,
      provider, price_micros, state, created_at)
    SELECT i, @accountId, '+1' || i, 'US', 0, 'none', 10000, 'completed', 0 FROM n`)
    .run({ accountId, purchases });
  // The last one is bought and not entered, the one before entered at another price.
  own.exec("BEGIN");
  await entered.enter({
    accountId, kind: "credit", reference: "credit:1", amountMicros: 1_000_000_000,
    now: system.now(),
  });
  for (let count = 1; count < purchases; count += 1) {
    await entered.enter({
      accountId, kind: "number", reference: `number-purchase:${count}`,
      amountMicros: count === purchases - 1 ? -5000 : -10_000, now: system.now(),
    });
  }
  own.exec("COMMIT");
  return () => createLedgerReader(readerOver(own, own)).strayReferences();
}

test("[BL87] strays among 20,000 billed things are found in linear time", async () => {
  await assertLinear("strays", 20_000, async (purchases) => {
    const strays = await strayWorld(purchases);
    assert.deepEqual(await strays(), [
      `number-purchase:${purchases - 1} is in the ledger, but nothing like it was completed`,
      `number-purchase:${purchases} was completed, but is not in the ledger`,
    ]);
    return strays;
  });
});
