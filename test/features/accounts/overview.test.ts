// The overview of an account: figures by day against plain sums, latency, and how it is read.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import fc from "fast-check";
import type { LedgerKind } from "#features/accounts/money/ledger.ts";
import { createOverview, LATENCY_CALLS_MAX, percentilesOf } from "#features/accounts/overview/overview.ts";
import { dayAfter } from "#core/days.ts";
import { utcDay } from "#core/system.ts";
import { openWriter, type Db } from "#storage/engines/sqlite/database.ts";
import { readerOver } from "#storage/engines/sqlite/reader.ts";
import { commandsOver, createSql } from "#storage/engines/sqlite/sql.ts";
import { createLedger } from "#storage/accounts/ledger.ts";
import { createOverviewStore } from "#storage/accounts/overview.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { newAssistant, newConversation, startTestServer, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const DAY = 86_400_000_000;
const system = createManualSystem();
const model = await startScriptedModel();
const server = await startTestServer({
  system,
  env: { PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback", PARLEY_CALL_PRICE: "0.10" },
});
const dataDir = testDataDir();
const db = openWriter(dataDir, { migrate: true });
after(async () => {
  await server.close();
  await model.close();
  db.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** The last days, in UTC. */
const lastDays = (days: number) => {
  const to = utcDay(system.now());
  return { from: dayAfter(to, 1 - days), to, by: "day", timeZone: "UTC", assistantId: null } as const;
};

const read = (query = "", key = server.key) =>
  server.call("GET", `/user/overview${query}`, { key });

/** An account of its own in the bare database, with an assistant its calls can name. */
async function newAccount(): Promise<number> {
  const { id } = await commandsOver(db)["accounts.create"]({
    name: "A", email: "", plan: "self-hosted", now: system.now(),
  });
  db.prepare(`
    INSERT INTO assistants (id, uuid, account_id, name, type, status, mode, created_at, updated_at,
      settings) VALUES (@id, @uuid, @id, 'A', 'outbound', 'active', 'pipeline', 0, 0, '{}')`)
    .run({ id, uuid: system.uuid() });
  return id;
}

const insertCall = (at: Db) => at.prepare<[object]>(`
  INSERT INTO calls (account_id, assistant_id, type, status, answered_at, duration_seconds,
    price_per_minute, created_at, updated_at, variables, turns)
  VALUES (@accountId, @accountId, 'outbound', @status, @answeredAt, @seconds, 0, @at, @at, '{}',
    @turns)`);
const insertConversation = (at: Db) => at.prepare<[object]>(`
  INSERT INTO conversations (uuid, account_id, assistant_id, type, variables, message_count,
    last_message_at, check_at, created_at, updated_at)
  VALUES (@uuid, @accountId, @accountId, 'widget', '{}', @messages, @at, @at, @at, @at)`);
const heard = (heardMs: number) =>
  ({ endpointMs: null, finalTranscriptMs: 1, firstTokenMs: 2, firstAudioMs: 3, heardMs });

test("[OV1] every day is listed, even those without activity, oldest first", async () => {
  const { status, body } = await read("?days=3");
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(body), [
    "id", "as_of", "currency", "balance", "reserved", "spend", "conversations", "calls", "latency",
    "first_steps",
  ]);
  assert.deepEqual([body.balance, body.reserved, body.currency], [5, 0, "USD"]);
  assert.equal(body.as_of, "2026-01-15T12:00:00.000000Z");
  const dates = ["2026-01-13", "2026-01-14", "2026-01-15"];
  const none = { messages: 0, calls: 0, numbers: 0, other: 0 };
  assert.deepEqual(body.spend, { total: 0, by_day: dates.map((date) => ({ date, ...none })) });
  for (const part of [body.conversations, body.calls, body.latency, body.latency.messages]) {
    assert.deepEqual(part.by_day.map((day: { date: string }) => day.date), dates);
  }
  assert.deepEqual([body.calls.live, body.calls.by_status], [0, []]);
  assert.deepEqual([body.latency.turns, body.latency.heard_ms], [0, null]);
  assert.equal((await read()).body.spend.by_day.length, 30);
  assert.equal((await read("?days=90")).body.spend.by_day[0].date, "2025-10-18");
  for (const days of ["0", "91", "1.5", "many"]) {
    const refused = await read(`?days=${days}`);
    assert.equal(refused.status, 422, days);
    assert.ok(refused.body.errors.days, days);
  }
  assert.equal((await server.call("GET", "/user/overview", { key: null })).status, 401);
});

test("[OV2] activity and charges show up, and another account sees none of them", async () => {
  const { key, accountId } = await server.newAccount();
  const { uuid } = await newAssistant(server, { status: "active" }, key);
  const conversation = await newConversation(server, uuid);
  const sent = await server.call("POST", `/conversations/${conversation}/messages`, {
    body: { message: "Hello" },
  });
  assert.equal(sent.status, 200);
  const { assistants, calls } = server.app.features;
  const assistant = await assistants.findByUuid(uuid);
  assert.ok(assistant);
  const begin = () => calls.begin({
    assistant, type: "outbound", conversationUuid: null, assistantPhone: null,
    customerPhone: "+15550100", variables: {},
  });
  const { call } = await begin();
  await calls.change(call, "in-progress", {});
  system.advance(90_000);
  await calls.end(call, {
    finalStatus: "completed", reason: "customer_hung_up",
    turns: [heard(700), heard(900)], hasRecording: false,
  });
  const { call: ringing } = await begin();
  const { body } = await read("?days=1", key);
  assert.equal(body.balance, 5 - 0.01 - 0.15);
  assert.ok(body.reserved > 0, "what the live call may cost");
  assert.deepEqual(body.spend.by_day, [
    { date: "2026-01-15", messages: 0.01, calls: 0.15, numbers: 0, other: 0 },
  ]);
  assert.equal(body.spend.total, 0.16);
  assert.deepEqual(body.conversations.by_day, [
    { date: "2026-01-15", conversations: 1, messages: 3 },
  ]);
  assert.deepEqual(body.calls, {
    live: 1,
    by_day: [{ date: "2026-01-15", calls: 2, answered: 1, minutes: 1.5 }],
    by_status: [{ status: "ended", calls: 1 }, { status: "initiated", calls: 1 }],
  });
  const latency = {
    turns: 2, endpoint_ms: null, final_transcript_ms: { p50: 1, p95: 1 },
    first_token_ms: { p50: 2, p95: 2 }, first_audio_ms: { p50: 3, p95: 3 },
    heard_ms: { p50: 700, p95: 900 },
  };
  const { messages, ...spoken } = body.latency;
  assert.deepEqual(spoken, { ...latency, by_day: [{ date: "2026-01-15", ...latency }] });
  assert.equal(messages.replies, 1);
  await calls.change(ringing, "no-answer", {});

  const other = await server.newAccount();
  const strange = (await read("?days=1", other.key)).body;
  assert.equal(strange.spend.total + strange.conversations.by_day[0].conversations, 0);
  assert.deepEqual([strange.calls.live, strange.calls.by_status], [0, []]);
  assert.deepEqual([strange.latency.turns, strange.latency.messages.replies], [0, 0]);
  assert.notEqual(accountId, other.accountId);
});

test("[OV3] the stream continues after the overview's event id: later events are not in the overview", async () => {
  const { key, accountId } = await server.newAccount();
  const before = (await read("?days=1", key)).body;
  await server.app.features.accounts.credit(accountId, 2_000_000);
  const events = await server.call("GET", `/user/events?after=${before.id}`, { key });
  const told = events.body.data as { type: string }[];
  assert.deepEqual(told.map(({ type }) => type), ["balance_changed"]);
  const now = (await read("?days=1", key)).body;
  assert.equal(now.balance, before.balance + 2);
  assert.equal(now.id, before.id + 1);
  assert.equal(now.spend.total, 0, "money put in is no spend");
});

const activity = fc.array(fc.record({
  day: fc.nat(40),
  minute: fc.nat(1439),
  kind: fc.constantFrom<LedgerKind>("credit", "message", "call", "number"),
  micros: fc.integer({ min: 1, max: 3_000_000 }),
  takes: fc.boolean(),
}), { maxLength: 60 });

test("[OV4] for any activity the sums match the ledger, day by day", async () => {
  const ledger = createLedger(createSql(db));
  const overview = createOverview({ store: createOverviewStore(readerOver(db, db)), system });
  const today = system.now() - (system.now() % DAY);
  const range = fc.integer({ min: 1, max: 40 });
  await fc.assert(fc.asyncProperty(activity, range, async (deeds, days) => {
    const accountId = await newAccount();
    const enter = (kind: LedgerKind, amountMicros: number, now: number) =>
      ledger.enter({ accountId, kind, reference: system.uuid(), amountMicros, now });
    await enter("credit", 1_000_000_000, today - 50 * DAY);
    const expected = new Map<string, number>();
    const conversations = new Map<string, number>();
    const calls = new Map<string, number>();
    const add = (map: Map<string, number>, key: string, value: number) =>
      map.set(key, (map.get(key) ?? 0) + value);
    const call = insertCall(db);
    const conversation = insertConversation(db);
    const live = async ({ day, minute, kind, micros, takes }: (typeof deeds)[number]) => {
      const at = today - day * DAY + minute * 60_000_000;
      const date = utcDay(at);
      const isSpend = kind !== "credit" || takes;
      assert.ok(await enter(kind, isSpend ? -micros : micros, at));
      if (isSpend) add(expected, `${date} ${kind}`, micros);
      if (kind === "call") {
        add(calls, date, micros % 100);
        call.run({
          accountId, at, status: "completed", answeredAt: at, seconds: micros % 100, turns: "[]",
        });
      }
      if (kind === "message") {
        add(conversations, date, micros % 7);
        conversation.run({ accountId, at, uuid: system.uuid(), messages: micros % 7 });
      }
    };
    db.exec("BEGIN");
    for (const deed of deeds) await live(deed);
    db.exec("COMMIT");
    const told = await overview(accountId, lastDays(days));
    assert.equal(told?.days.length, days);
    const dates = told.days.map(({ date }) => date);
    assert.deepEqual(dates, Array.from({ length: days }, (_, index) =>
      utcDay(today - (days - 1 - index) * DAY)));
    for (const { date, spend, messages, calls: called } of told.days) {
      const of = (kind: LedgerKind) => expected.get(`${date} ${kind}`) ?? 0;
      assert.deepEqual(spend, {
        messages: of("message"), calls: of("call"), numbers: of("number"), other: of("credit"),
      });
      assert.equal(messages, conversations.get(date) ?? 0);
      assert.equal(called[0]?.seconds ?? 0, calls.get(date) ?? 0);
    }
  }), { numRuns: 60 });
});

test("[OV5] percentiles use the nearest rank, over known values only", () => {
  const values = fc.array(fc.option(fc.nat(120_000)), { maxLength: 200 });
  fc.assert(fc.property(values, (given) => {
    const known = given.filter((value) => value !== null).sort((a, b) => a - b);
    const found = percentilesOf(given);
    if (known.length === 0) return assert.equal(found, null);
    assert.ok(found);
    for (const [value, share] of [[found.p50, 0.5], [found.p95, 0.95]] as const) {
      const upTo = known.filter((item) => item <= value).length;
      const below = known.filter((item) => item < value).length;
      assert.ok(known.includes(value));
      assert.ok(upTo >= share * known.length && below < share * known.length);
    }
  }));
});

test("[OV6] latency covers a bounded number of the newest calls; replies are timed", async () => {
  const accountId = await newAccount();
  const call = insertCall(db);
  const today = system.now() - (system.now() % DAY);
  const insert = (at: number, heardMs: number, answeredAt: number | null = at) => call.run({
    accountId, at, answeredAt, status: "completed", seconds: 1,
    turns: answeredAt === null ? "[]" : JSON.stringify([heard(heardMs)]),
  });
  db.transaction(() => {
    insert(today - 3 * DAY, 9999);
    for (let count = 1; count < LATENCY_CALLS_MAX; count += 1) insert(today - 2 * DAY + count, 500);
    insert(today, 100);
    insert(today, 0, null);
  })();
  const uuid = system.uuid();
  insertConversation(db).run({ accountId, at: today, uuid, messages: 5 });
  const message = db.prepare(`
    INSERT INTO messages (conversation_id, role, content, created_at)
    SELECT id, @role, '', created_at + @ms * 1000 FROM conversations WHERE uuid = @uuid`);
  const said = [["assistant", 0], ["user", 10], ["assistant", 810], ["user", 900], ["user", 950]];
  for (const [role, ms] of said) message.run({ role, ms, uuid });
  const told = await createOverview({
    store: createOverviewStore(readerOver(db, db)), system,
  })(accountId, lastDays(5));
  assert.ok(told);
  assert.deepEqual(told.days.map(({ callLatency }) => callLatency.turns),
    [0, 0, LATENCY_CALLS_MAX - 1, 0, 1]);
  assert.deepEqual(told.callLatency.stages.heardMs, { p50: 500, p95: 500 });
  assert.deepEqual(told.days.at(-1)?.callLatency.stages.heardMs, { p50: 100, p95: 100 });
  assert.deepEqual(told.replyLatency, { replies: 1, replyMs: { p50: 800, p95: 800 } });
});

test("[OV7] every query uses a time index, and other work can run between the days", async () => {
  const asked: string[] = [];
  const reader = readerOver(db, db);
  const store = createOverviewStore({
    ...reader,
    prepare: (sql) => {
      asked.push(sql);
      return reader.prepare(sql);
    },
  });
  const ranged = asked.filter((sql) => sql.includes("created_at >= @from"));
  assert.equal(ranged.length, 9);
  for (const sql of ranged) {
    const plan = db.prepare<[object], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
      .all({ accountId: 1, assistantId: 1, from: 0, to: 1, rows: 1 }).map(({ detail }) => detail).join("; ");
    const index = sql.includes("FROM ledger") ? /COVERING INDEX ledger_by_time/ : /INDEX \w+_by_time/;
    assert.match(plan, index, sql);
    assert.match(plan, /account_id=\? AND created_at>\? AND created_at<\?/);
  }
  let turns = 0;
  let isDone = false;
  const tick = (): void => {
    turns += 1;
    if (!isDone) setImmediate(tick);
  };
  setImmediate(tick);
  await createOverview({ store, system })(await newAccount(), lastDays(90));
  isDone = true;
  assert.ok(turns >= 89, `${turns} turns of the event loop for 90 days`);
});

test("[OV11] by hour, day or week, for any range and time zone, nothing is counted twice or left out, even in hours of a clock change", async () => {
  const { key, accountId } = await server.newAccount();
  const { id: assistantId } = await newAssistant(server, { status: "active" }, key);
  const { id: otherId } = await newAssistant(server, { status: "active" }, key);
  const at = openWriter(server.dataDir, { migrate: false });
  const call = at.prepare(`
    INSERT INTO calls (account_id, assistant_id, type, status, answered_at, duration_seconds,
      price_per_minute, total_cost_micros, created_at, updated_at, variables)
    VALUES (?, ?, 'outbound', 'completed', 1, 60, 0, 20000, ?, 0, '{}')`);
  const hour = 3_600_000_000;
  // Every half hour of the two days around the night in which Berlin's clocks go back.
  const first = Date.parse("2025-10-24T22:00:00Z") * 1000;
  for (let half = 0; half < 2 * 49; half += 1) {
    call.run(accountId, half % 2 === 0 ? assistantId : otherId, first + (half * hour) / 2);
  }
  at.close();
  const calls = async (query: string): Promise<{ date: string; calls: number }[]> =>
    (await read(`?date_from=2025-10-25&date_to=2025-10-26&${query}`, key)).body.calls.by_day;
  const berlin = "timezone=Europe/Berlin";
  const days = await calls(berlin);
  assert.deepEqual(days.map((day) => [day.date, day.calls]), [["2025-10-25", 48], ["2025-10-26", 50]]);
  const hours = await calls(`by=hour&${berlin}`);
  assert.equal(hours.length, 24 + 25);
  assert.deepEqual([...new Set(hours.map((one) => one.calls))], [2]);
  assert.equal(hours.filter(({ date }) => date === "2025-10-26T02:00").length, 2);
  // The list behind an hour has as many.
  const listed = async (query: string): Promise<number> =>
    (await server.call("GET", `/user/calls?${query}`, { key })).body.total;
  assert.equal(await listed(`date_from=2025-10-25T14:00&date_to=2025-10-25T15:00&${berlin}`), 2);
  assert.equal(await listed(`date_from=2025-10-26T02:00&date_to=2025-10-26T03:00&${berlin}`), 4);
  assert.equal(await listed("date_from=2025-10-25T24:00"), undefined, "no such time");
  const weeks = (await read(`?date_from=2025-10-18&date_to=2025-10-29&by=week&${berlin}`, key)).body;
  assert.deepEqual(weeks.calls.by_day.map((week: { date: string; calls: number }) =>
    [week.date, week.calls]), [["2025-10-18", 0], ["2025-10-20", 98], ["2025-10-27", 0]]);
  const one = (await read(`?date_from=2025-10-25&date_to=2025-10-26&${berlin}&assistant_id=${otherId}`, key)).body;
  assert.deepEqual(one.calls.by_day.map((day: { calls: number }) => day.calls), [24, 25]);
  assert.equal(one.spend.total, 49 * 0.02, "what its calls cost");
  // The account's own zone counts where none is asked for.
  await server.call("PUT", "/user/settings", { key, body: { time_zone: "Europe/Berlin" } });
  assert.deepEqual(await calls(""), days);
  for (const query of [
    "date_from=2025-10-26&date_to=2025-10-25", "date_from=2024-10-01&date_to=2025-10-25",
    "date_from=2025-10-01&date_to=2025-10-25&by=hour", "date_from=2025-02-30", "by=year",
    "date_from=2025-10-25T10:00", "timezone=Nowhere",
  ]) assert.equal((await read(`?${query}`, key)).status, 422, query);
});
