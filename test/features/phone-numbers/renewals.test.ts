// What a number costs month by month: the calendar, a year of renewals, short balances and top-ups,
// grace, suspension and loss, clocks that jump; and the command for the operator's own numbers.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { DAY_MICROS } from "#core/zones.ts";
import { createAccounts } from "#features/accounts/accounts.ts";
import { auditAccount, type LedgerEntry } from "#features/accounts/money/ledger.ts";
import { createLogger } from "#core/logger.ts";
import { LIMITS } from "#core/limits.ts";
import { createMemoryBus } from "#events/bus.ts";
import { createNumbers } from "#app/phone-numbers.ts";
import { monthAfter } from "#features/phone-numbers/billing.ts";
import { createRenewals } from "#features/phone-numbers/renewals.ts";
import { runBeside } from "#support/databases/beside.ts";
import { databaseAt, isOverPostgres } from "#support/engines.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { loneCluster } from "#support/nodes/cluster.ts";
import { runCli } from "#support/process.ts";
import { newAssistant, openBeside, startTestServer, testDataDir } from "#support/server.ts";

const DAY_MS = 86_400_000;
const PRICE = 3_990_000;
const GRACE_DAYS = 7;
const NUMBER = "+12015550100";

const dataDir = testDataDir();
const storage = await openBeside(dataDir, "forgets");
after(async () => {
  await storage.close();
  rmSync(dataDir, { recursive: true });
});
await storage.numberInventory.stock({
  now: 1,
  numbers: Array.from({ length: 300 }, (_, at) => ({
    phoneNumber: `+1201555${String(100 + at).padStart(4, "0")}`, countryCode: "US",
    smsCapable: true, monthlyMicros: PRICE, carrier: null,
  })),
});
let bought = 0;

/** An account with one number, bought on 31 January 2026 at noon, and a clock without ticks. */
async function subscriber(balanceMicros: number) {
  const system = createManualSystem(Date.UTC(2026, 0, 31, 12));
  const bus = createMemoryBus();
  const accounts = createAccounts({ store: storage.accounts, system, bus });
  const open = () => createNumbers({
    storage, bus, system, log: createLogger("silent"), nodes: loneCluster(),
    config: {
      PARLEY_TWILIO_URL: null, PARLEY_TWILIO_ACCOUNT_SID: null, PARLEY_TWILIO_AUTH_TOKEN: null,
      PARLEY_NUMBER_GRACE_DAYS: GRACE_DAYS,
    },
  });
  const numbers = open();
  const { id: accountId } = await accounts.create("A");
  await accounts.credit(accountId, balanceMicros);
  const phoneNumber = `+1201555${String(100 + bought).padStart(4, "0")}`;
  bought += 1;
  const { purchase } = await numbers.purchases.purchase(accountId, phoneNumber, null);
  const id = purchase.phoneNumberId!;
  await published();
  const told: string[] = [];
  bus.subscribe(`account:${accountId}`, (notice) => {
    if (notice.kind !== "committed" || !notice.event.type.startsWith("phone_number")) return;
    const data = JSON.parse(notice.event.json) as Record<string, string>;
    const until = data.paid_until ?? data.grace_until ?? data.release_at ?? data.reason ?? "";
    told.push(`${notice.event.type.slice(13)} ${until.slice(0, 10)}`);
  });
  return {
    accountId, id, phoneNumber, told, system, numbers,
    credit: (micros: number) => accounts.credit(accountId, micros),
    balance: async () => (await accounts.find(accountId))!.balanceMicros,
    number: () => storage.phoneNumbers.findOwned(accountId, id),
    sweep: () => numbers.sweep().then(published),
    /** As a new process would. */
    restart: () => open().sweep().then(published),
    days: async (count: number) => {
      for (let day = 1; day <= count; day += 1) {
        system.advance(DAY_MS);
        await numbers.sweep();
      }
      await published();
    },
    /** First days of the months that were charged as renewals, oldest first. */
    charged: async () => {
      let references: string[] = [];
      await storage.ledger.audit(async (totals, entries, reserved) => {
        if (totals.accountId !== accountId) return;
        const all: LedgerEntry[] = [];
        for await (const entry of entries) all.push(entry);
        assert.deepEqual(await auditAccount(totals, all, reserved), []);
        references = all.filter(({ kind }) => kind === "number").map(({ reference }) => reference);
      });
      return references.slice(1).map((reference) => {
        assert.ok(reference.startsWith(`number:${id}:`), reference);
        return reference.slice(`number:${id}:`.length);
      });
    },
  };
}

const MONTHS = [
  "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31", "2026-06-30", "2026-07-31", "2026-08-31",
  "2026-09-30", "2026-10-31", "2026-11-30", "2026-12-31", "2027-01-31", "2027-02-28", "2027-03-31",
];

/** What was committed is published by the next tick. */
const published = () => new Promise<void>((resolve) => process.nextTick(resolve));

test("[PN20] billing months are calendar months from the first day, to the microsecond", () => {
  const anchor = Date.UTC(2028, 0, 31, 23, 59, 59, 999) * 1000 + 999;
  let at = anchor;
  const days = Array.from({ length: 14 }, () => {
    at = monthAfter(at, anchor);
    assert.equal(at % DAY_MICROS, anchor % DAY_MICROS);
    return new Date(Math.floor(at / 1000)).toISOString().slice(2, 10);
  });
  assert.deepEqual(days, [
    "28-02-29", "28-03-31", "28-04-30", "28-05-31", "28-06-30", "28-07-31", "28-08-31",
    "28-09-30", "28-10-31", "28-11-30", "28-12-31", "29-01-31", "29-02-28", "29-03-31",
  ]);
  fc.assert(fc.property(
    fc.date({ min: new Date("2000-01-01"), max: new Date("2099-12-31"), noInvalidDate: true }),
    fc.integer({ min: 1, max: 40 }),
    (date, months) => {
      const begin = date.getTime() * 1000;
      let end = begin;
      for (let month = 0; month < months; month += 1) {
        const next = monthAfter(end, begin);
        const length = (next - end) / DAY_MICROS;
        assert.ok(length >= 28 && length <= 31, `${length} days`);
        end = next;
      }
      const reached = new Date(end / 1000);
      const passed = (reached.getUTCFullYear() - date.getUTCFullYear()) * 12
        + reached.getUTCMonth() - date.getUTCMonth();
      assert.equal(passed, months);
    }));
});

test("[PN21] a year of renewals: each month is charged once, on its day, and published", async () => {
  const { days, charged, balance, told, number } = await subscriber(20 * PRICE);
  await days(400);
  assert.deepEqual(await charged(), MONTHS.slice(0, 13));
  assert.equal(await balance(), 6 * PRICE);
  assert.deepEqual(told, MONTHS.slice(1).map((day) => `renewed ${day}`));
  assert.deepEqual([(await number())?.status, (await number())?.graceUntil], ["active", null]);
});

test("[PN22] a short balance: grace, suspension, loss, each published; a top-up restores the number", async () => {
  const one = await subscriber(PRICE);
  await one.days(28);
  assert.equal((await one.number())?.status, "grace");
  assert.deepEqual(one.told, ["grace 2026-03-07"]);
  // Tried every day: a top-up is taken the day after.
  await one.days(3);
  await one.credit(PRICE);
  await one.days(1);
  assert.deepEqual([(await one.number())?.status, await one.balance()], ["active", 0]);
  assert.deepEqual(one.told, ["grace 2026-03-07", "renewed 2026-03-31"]);
  assert.deepEqual(await one.charged(), ["2026-02-28"]);
  // Seven days of grace from 31 March, seven of suspension.
  await one.days(27 + 7);
  assert.equal((await one.number())?.status, "suspended");
  assert.equal(await storage.phoneNumbers.find(one.accountId, one.id), null);
  assert.deepEqual(await storage.phoneNumbers.list(one.accountId), []);
  await one.credit(PRICE);
  await one.days(1);
  assert.equal((await one.number())?.status, "active");
  assert.equal((await storage.phoneNumbers.find(one.accountId, one.id))?.id, one.id);
  await one.days(22 + 7 + 6);
  assert.equal((await one.number())?.status, "suspended");
  await one.days(1);
  assert.equal(await one.number(), null);
  assert.deepEqual(one.told.slice(2), [
    "grace 2026-04-07", "suspended 2026-04-14", "renewed 2026-04-30",
    "grace 2026-05-07", "suspended 2026-05-14", "released unpaid",
  ]);
  assert.deepEqual(await one.charged(), ["2026-02-28", "2026-03-31"]);
  assert.equal(await one.balance(), 0);
  // It is for sale again.
  assert.ok(await storage.numberInventory.findFreeNumber(one.phoneNumber));
});

test("[PN23] clock jumps over months, and restarts: each month is charged once and in order", async () => {
  const rich = await subscriber(20 * PRICE);
  rich.system.advance(200 * DAY_MS);
  await Promise.all([rich.sweep(), rich.restart(), rich.restart()]);
  await rich.restart();
  assert.deepEqual(await rich.charged(), MONTHS.slice(0, 6));
  assert.equal((await rich.number())?.paidUntil, Date.UTC(2026, 7, 31, 12) * 1000);
  // Enough for two of the six: these are paid, and grace begins when it was found out.
  const poor = await subscriber(3 * PRICE);
  poor.system.advance(200 * DAY_MS);
  await poor.restart();
  await poor.restart();
  assert.deepEqual(await poor.charged(), MONTHS.slice(0, 2));
  assert.deepEqual([(await poor.number())?.status, poor.told.at(-1)], ["grace", "grace 2026-08-26"]);
  await poor.credit(10 * PRICE);
  await poor.days(1);
  assert.deepEqual(await poor.charged(), MONTHS.slice(0, 6));
  assert.equal((await poor.number())?.status, "active");
  // Given up before the jump: no month more.
  const leaver = await subscriber(20 * PRICE);
  await leaver.numbers.numbers.release(leaver.accountId, leaver.id);
  leaver.system.advance(200 * DAY_MS);
  await leaver.restart();
  assert.deepEqual([await leaver.charged(), await leaver.number()], [[], null]);
  assert.deepEqual(leaver.told, ["released requested"]);
});

test("[PN24] any year of top-ups, stops and jumps: charges match the months paid exactly, in order", async () => {
  const step = fc.record({
    days: fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 70 })),
    credit: fc.oneof(
      { weight: 9, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 3 * PRICE })),
    sweeps: fc.integer({ min: 0, max: 2 }),
  });
  await fc.assert(fc.asyncProperty(
    fc.integer({ min: 1, max: 4 }), fc.array(step, { minLength: 10, maxLength: 60 }),
    async (months, steps) => {
      const one = await subscriber(months * PRICE);
      let paidIn = months * PRICE;
      for (const { days, credit, sweeps } of steps) {
        one.system.advance(days * DAY_MS);
        if (credit > 0) await one.credit(credit);
        paidIn += credit;
        for (let sweep = 0; sweep < sweeps; sweep += 1) await one.restart();
      }
      await one.restart();
      const charged = await one.charged();
      let at = Date.UTC(2026, 0, 31, 12) * 1000;
      const anchor = at;
      const expected = charged.map(() => {
        at = monthAfter(at, anchor);
        return new Date(at / 1000).toISOString().slice(0, 10);
      });
      assert.deepEqual(charged, expected);
      assert.equal(await one.balance(), paidIn - PRICE * (1 + charged.length));
      const number = await one.number();
      if (number) assert.equal(number.paidUntil, monthAfter(at, anchor));
      if (number?.status === "active") assert.ok(number.paidUntil! > one.system.now());
      else assert.ok(await one.balance() < PRICE || one.told.at(-1) === "released unpaid");
    }), { numRuns: 40 });
});

test("[PN25] the server's own clock renews; a suspended number neither calls nor can be assigned", async () => {
  const system = createManualSystem();
  const server = await startTestServer({ system, env: { PARLEY_SPEECH: "loopback" } });
  const { accountId, features } = { accountId: server.accountId, features: server.app.features };
  await runBeside(server.dataDir, `
    INSERT INTO number_inventory (phone_number, country_code, sms_capable, price_micros, created_at)
    VALUES (@number, 'US', 1, 5000000, 1)`, { number: NUMBER });
  const { body } = await server.call("POST", "/user/phone-numbers/purchase", {
    body: { phone_number: NUMBER },
  });
  const { id } = body.data as { id: number };
  const assistant = await newAssistant(
    server, { phone_number_id: id, type: "outbound", status: "active" });
  const next = (type: string) => new Promise<void>((resolve) => {
    const stop = features.bus.subscribe(`account:${accountId}`, (notice) => {
      if (notice.kind !== "committed" || notice.event.type !== type) return;
      stop();
      resolve();
    });
  });
  const tick = async (type: string) => {
    await runBeside(
      server.dataDir, "UPDATE phone_numbers SET due_at = 1, paid_until = 1, grace_until = 1");
    const happened = next(type);
    system.advance(LIMITS.numberSweepMs);
    await happened;
  };
  const read = async () => (await server.call("GET", `/user/phone-numbers/${id}`)).body.data as
    Record<string, unknown>;
  await tick("phone_number_grace");
  assert.deepEqual([(await read()).status, (await read()).has_active_subscription], ["grace", true]);
  await tick("phone_number_suspended");
  const suspended = await read();
  assert.deepEqual([suspended.status, suspended.has_active_subscription], ["suspended", false]);
  assert.match(String(suspended.grace_until), /^2026-01-22T/);
  await server.app.features.accounts.credit(accountId, 1_000_000);
  const call = async () => {
    const made = await server.call("POST", "/user/make_call", {
      body: { phone_number: "+15550100001", assistant_id: assistant.id },
    });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const { body: record } = await server.call("GET", `/user/calls/${made.body.call_id}`);
    return record.assistant_phone_number as string | null;
  };
  assert.equal(await call(), null);
  assert.deepEqual((await server.call("GET", "/user/assistants/phone-numbers")).body, []);
  const given = await server.call("PUT", `/user/assistant/${assistant.id}`, {
    body: { phone_number_id: id },
  });
  assert.equal(given.status, 422);
  // Its assistants keep it for when it is paid.
  const kept = await server.call("PUT", `/user/assistant/${assistant.id}`, { body: { name: "B" } });
  assert.equal(kept.status, 200);
  await features.accounts.credit(accountId, 6_000_000);
  const change = (text: string): Promise<void> => runBeside(server.dataDir, text);
  await change(`UPDATE phone_numbers SET paid_until = ${system.now()}`);
  const renewed = next("phone_number_renewed");
  await change("UPDATE phone_numbers SET due_at = 1");
  system.advance(LIMITS.numberSweepMs);
  await renewed;
  assert.equal((await read()).status, "active");
  assert.equal(await call(), NUMBER);
  await server.close();
});

test("[PN26] [PN234] the command imports numbers whole or not at all and lists who has them", async () => {
  const folder = testDataDir();
  if (isOverPostgres) await databaseAt(folder, "durable");
  const run = (...args: string[]) =>
    JSON.parse(runCli(folder, ["number", ...args, "--json"])) as unknown;
  const fails = (why: RegExp, ...args: string[]) =>
    assert.throws(() => runCli(folder, ["number", ...args]), why);
  const file = join(folder, "numbers.txt");
  writeFileSync(file, "# ours\n+1 201 555 0101\n\n+12015550102 # the second\n");
  assert.deepEqual(run("import", file, "--price", "1.25", "--sms"), { imported: 2, known: 0, moved: [] });
  assert.deepEqual(run("import", file), { imported: 0, known: 2, moved: [] });
  writeFileSync(file, "+12015550103\n0201\n+33123456789\n+441632960961\n");
  fails(/line 2: 0201[^]*line 3:[^]*no price[^]*line 4:[^]*--country/, "import", file);
  writeFileSync(file, "+441632960961\n");
  assert.deepEqual(run("import", file, "--country", "gb"), { imported: 1, known: 0, moved: [] });
  fails(/one of twilio, telnyx/, "import", file, "--carrier", "pigeon");
  const late = ["import", file, "--country", "gb", "--price", "9"];
  const moves = (from: string | null, to: string | null) =>
    ({ imported: 0, known: 1, moved: [{ phone_number: "+441632960961", from, to }] });
  assert.deepEqual(run(...late, "--carrier", "plivo"), moves(null, "plivo"));
  assert.deepEqual(run(...late, "--carrier", "none"), moves("plivo", null));
  assert.equal(
    runCli(folder, ["number", ...late, "--carrier", "telnyx"]),
    "0 numbers imported, 1 already known\n+441632960961 moved from none to telnyx\n");
  assert.deepEqual(run(...late), { imported: 0, known: 1, moved: [] });
  fails(/two letters/, "import", file, "--country", "GBR");
  fails(/FILE is required/, "import");
  const item = {
    sms_capable: true, price: 1.25, carrier: null, account_id: null, country_code: "US",
  };
  assert.deepEqual(run("list"), [
    { phone_number: "+12015550101", ...item }, { phone_number: "+12015550102", ...item },
    {
      phone_number: "+441632960961", country_code: "GB", sms_capable: false, price: null,
      carrier: "telnyx", account_id: null,
    },
  ]);
  rmSync(folder, { recursive: true });
});

test("[MU42] a number whose renewal fails is tried once in a sweep and keeps no other from its renewal", async () => {
  const due = new Set([1, 2, 3]);
  const tried: number[] = [];
  const renewals = createRenewals({
    store: {
      due: async () => [...due].map((phoneNumberId) => ({ accountId: 1, phoneNumberId })),
      renew: async ({ phoneNumberId }) => {
        tried.push(phoneNumberId);
        if (phoneNumberId === 1) throw new Error("its row cannot be read");
        due.delete(phoneNumberId);
        return [];
      },
    },
    bus: createMemoryBus(), system: createManualSystem(), log: createLogger("silent"), graceDays: 3,
  });
  await renewals.sweep();
  assert.deepEqual(tried, [1, 2, 3]);
});
