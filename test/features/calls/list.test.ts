// Pages of calls: each call with what was said in it, however many are on the page.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { insertBeside, runBeside, sqlBeside } from "#support/databases/beside.ts";
import { newAssistant, startTestServer } from "#support/server.ts";

const server = await startTestServer({ env: { PARLEY_SPEECH: "loopback" } });
after(() => server.close());

interface Row {
  id: number;
  transcript: string;
  transcript_entries: { number: number; text: string }[];
}

test("[CR80] a page of calls has each call's transcript, as the call itself has it", async () => {
  const { id: assistantId } = await newAssistant(server, { status: "active" });
  const beside = await sqlBeside(server.dataDir);
  const call = beside.sql.prepare<object>(`
    INSERT INTO calls (account_id, assistant_id, type, status, price_per_minute, created_at,
      updated_at, variables)
    VALUES (@accountId, @assistantId, 'outbound', 'completed', 0, 0, 0, '{}')`);
  const entry = beside.sql.prepare<object>(`
    INSERT INTO call_entries (call_id, number, speaker, text, start_ms, end_ms, interrupted)
    VALUES (@id, @number, 'customer', @text, 0, 1, 0)`);
  const calls = LIMITS.pageSizeMax + 5;
  await beside.run("BEGIN");
  for (let count = 0; count < calls; count += 1) {
    const id = await call.insert({ accountId: server.accountId, assistantId });
    // Backwards, and in some of them nothing is said at all.
    for (let number = count % 4; number > 0; number -= 1) {
      await entry.run({ id, number, text: `${id}: ${number}` });
    }
  }
  await beside.run("COMMIT");
  await beside.close();
  const list = async (query: string): Promise<Row[]> =>
    (await server.call("GET", `/user/calls${query}`)).body.data as Row[];
  const whole = await list(`?per_page=${LIMITS.pageSizeMax}`);
  assert.equal(whole.length, LIMITS.pageSizeMax);
  for (const row of whole) {
    assert.deepEqual(row.transcript_entries.map(({ number, text }) => [number, text]),
      Array.from({ length: (row.id - 1) % 4 }, (_, index) => [index + 1, `${row.id}: ${index + 1}`]));
  }
  const rest = await list(`?per_page=${LIMITS.pageSizeMax}&page=2`);
  assert.equal(rest.length, 5);
  for (const row of [...whole.slice(0, 5), ...rest]) {
    assert.deepEqual(row, (await server.call("GET", `/user/calls/${row.id}`)).body);
  }
  assert.deepEqual(await list("?status=busy"), []);
});

test("[OV10] the account's time zone is chosen once and audited; lists without a zone count days in it, with summer time", async () => {
  const { key, accountId } = await server.newAccount();
  const { id: assistantId } = await newAssistant(server, { status: "active" }, key);
  // The first and the last minute of 29 March 2026 in Berlin, which has 23 hours.
  for (const at of ["2026-03-28T23:00:00Z", "2026-03-29T21:59:00Z"]) {
    await insertBeside(server.dataDir, `
      INSERT INTO calls (account_id, assistant_id, type, status, price_per_minute, created_at,
        updated_at, variables)
      VALUES (@accountId, @assistantId, 'outbound', 'completed', 0, @at, 0, '{}')`,
    { accountId, assistantId, at: Date.parse(at) * 1000 });
  }
  const found = async (query: string): Promise<number> =>
    (await server.call("GET", `/user/calls?${query}`, { key })).body.total;
  const settings = () => server.call("GET", "/user/settings", { key });
  assert.deepEqual((await settings()).body, { time_zone: null });
  assert.equal(await found("date_from=2026-03-29&date_to=2026-03-29"), 1);
  const put = (zone: string | null) =>
    server.call("PUT", "/user/settings", { key, body: { time_zone: zone } });
  assert.equal((await put("Nowhere/At_All")).status, 422);
  const { status, body } = await put("Europe/Berlin");
  assert.deepEqual([status, body], [200, { time_zone: "Europe/Berlin" }]);
  assert.deepEqual((await settings()).body, { time_zone: "Europe/Berlin" });
  assert.equal((await server.call("GET", "/user/me", { key })).body.time_zone, "Europe/Berlin");
  assert.equal(await found("date_from=2026-03-29&date_to=2026-03-29"), 2);
  assert.equal(await found("date_to=2026-03-28"), 0);
  assert.equal(await found("date_from=2026-03-30"), 0);
  assert.equal(await found("date_from=2026-03-29&date_to=2026-03-29&timezone=UTC"), 1);
  for (const list of ["conversations", "leads", "ledger", "audit"]) {
    const days = "date_from=2026-03-29&date_to=2026-03-29";
    assert.equal((await server.call("GET", `/user/${list}?${days}`, { key })).status, 200, list);
    const none = await server.call("GET", `/user/${list}?date_from=2026-02-30`, { key });
    assert.equal(none.status, 422, list);
  }
  const noted = await server.call("GET", "/user/audit?action=settings.update", { key });
  assert.deepEqual(noted.body.data.map(({ details }: { details: object }) => details),
    [{ fields: ["time_zone"] }]);
  assert.equal((await put(null)).status, 200);
  assert.equal(await found("date_from=2026-03-29&date_to=2026-03-29"), 1);
});

test("[CR426] calls are found by transcript text, and days are those of the requested time zone", async () => {
  const { key, accountId } = await server.newAccount();
  const { id: assistantId } = await newAssistant(server, { status: "active" }, key);
  // Half past eleven in the evening, UTC: the next day in Berlin.
  const at = Date.parse("2026-03-01T23:30:00Z") * 1000;
  const id = await insertBeside(server.dataDir, `
    INSERT INTO calls (account_id, assistant_id, type, status, price_per_minute, created_at,
      updated_at, variables)
    VALUES (@accountId, @assistantId, 'outbound', 'completed', 0, @at, 0, '{}')`,
  { accountId, assistantId, at });
  await runBeside(server.dataDir, `
    INSERT INTO call_entries (call_id, number, speaker, text, start_ms, end_ms, interrupted)
    VALUES (@id, 1, 'customer', 'I want 100% of my Refund, Übermorgen', 0, 1, 0)`, { id });
  const found = async (query: string): Promise<number> =>
    (await server.call("GET", `/user/calls?${query}`, { key })).body.total;
  for (const [query, count] of [
    ["search=refund", 1], ["search=100%25", 1], ["search=100_", 0], ["search=return", 0],
    ["search=%C3%9Cbermorgen", 1], ["search=%C3%BCbermorgen", 1],
    ["date_from=2026-03-02", 0], ["date_from=2026-03-02&timezone=Europe/Berlin", 1],
    ["date_to=2026-03-01", 1], ["date_to=2026-03-01&timezone=Europe/Berlin", 0],
  ] as const) assert.equal(await found(query), count, query);
  const { status } = await server.call("GET", "/user/calls?timezone=Nowhere/At_All", { key });
  assert.equal(status, 422);
});

test("[CR427] a range to 9999-12-31 is open-ended in every time zone; nonexistent days of 9999 are refused", async () => {
  const { key } = await server.newAccount();
  const statusOf = async (query: string): Promise<number> =>
    (await server.call("GET", query, { key })).status;
  for (const list of ["calls", "leads", "ledger", "conversations", "audit"]) {
    for (const [days, status] of [
      ["date_to=9999-12-31", 200], ["date_from=2026-03-01&date_to=9999-12-31T23:59", 200],
      ["date_to=9999-12-31&timezone=Pacific/Kiritimati", 200], ["date_to=9999-01-01", 200],
      ["date_to=9999-02-29", 422], ["date_from=9999-12-31", 422],
    ] as const) assert.equal(await statusOf(`/user/${list}?${days}`), status, `${list} ${days}`);
  }
  // Each of these days would be counted.
  assert.equal(await statusOf("/user/costs?date_to=9999-12-31"), 422);
});
