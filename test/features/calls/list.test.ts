// Pages of calls: each call with what was said in it, however many are on the page.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { openWriter } from "#storage/engines/sqlite/database.ts";
import { newAssistant, startTestServer } from "#support/server.ts";

const server = await startTestServer({ env: { PARLEY_SPEECH: "loopback" } });
after(() => server.close());

interface Row {
  id: number;
  transcript: string;
  transcript_entries: { number: number; text: string }[];
}

test("[CR80] a page of calls has the transcript of each, as the call itself has it", async () => {
  const { id: assistantId } = await newAssistant(server, { status: "active" });
  const db = openWriter(server.dataDir, { migrate: false });
  const call = db.prepare(`
    INSERT INTO calls (account_id, assistant_id, type, status, price_per_minute, created_at,
      updated_at, variables) VALUES (?, ?, 'outbound', 'completed', 0, 0, 0, '{}')`);
  const entry = db.prepare(`
    INSERT INTO call_entries (call_id, number, speaker, text, start_ms, end_ms, interrupted)
    VALUES (?, ?, 'customer', ?, 0, 1, 0)`);
  const calls = LIMITS.pageSizeMax + 5;
  db.transaction(() => {
    for (let count = 0; count < calls; count += 1) {
      const { lastInsertRowid: id } = call.run(server.accountId, assistantId);
      // Backwards, and in some of them nothing is said at all.
      for (let number = count % 4; number > 0; number -= 1) entry.run(id, number, `${id}: ${number}`);
    }
  })();
  db.close();
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
