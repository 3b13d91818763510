// How long the reports and lists of a full account take over a file and over PostgreSQL: the same
// rows in both, each requested from a real server over HTTP, one request after another.
// `BENCH_SCALE=0.1`: with a tenth of the rows; `BENCH_ONLY=file`: over one of the two.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAccounts } from "#features/accounts/accounts.ts";
import type { AssistantSettings } from "#features/assistants/settings.ts";
import { createSystem } from "#core/system.ts";
import { createMemoryBus } from "#events/bus.ts";
import { openSession } from "#storage/engines/postgres/session.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { openWriter } from "#storage/engines/sqlite/database.ts";
import { createSql } from "#storage/engines/sqlite/sql.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import type { Storage } from "#storage/storage.ts";
import { databaseAt } from "#support/engines.ts";
import { startServer, stop } from "./load.ts";
import { fill, MESSAGES_EACH, type Size } from "./reports-fill.ts";
import { median, percentile, print, printResult } from "./report.ts";

const scale = Number(process.env.BENCH_SCALE ?? "1");
const SIZE: Size = {
  conversations: 10_000 * scale, calls: 10_000 * scale, leads: 10_000 * scale, days: 90,
};
const ASSISTANTS = 20;
const FILL_MS = 10 * 60_000;
/** Times each request is sent: after a connection's sixth a plan may be kept for good. */
const ASKED = 40;
const COUNTED = 15;

interface Place {
  name: string;
  env: Record<string, string>;
  open(): Promise<Storage>;
  fill(accounts: Account[]): Promise<void>;
  close(): Promise<void>;
}
interface Account { id: number; key: string; assistantIds: number[] }

const system = createSystem();

async function makeAccounts(storage: Storage): Promise<Account[]> {
  const accounts = createAccounts({ store: storage.accounts, system, bus: createMemoryBus() });
  const made: Account[] = [];
  for (const name of ["One", "Two"]) {
    const { id } = await accounts.create(name, "");
    await accounts.credit(id, 1_000_000_000);
    const assistantIds: number[] = [];
    for (let at = 0; at < ASSISTANTS; at += 1) {
      const assistant = await storage.assistants.create({
        uuid: system.uuid(), accountId: id, now: system.now(), assistantsMax: ASSISTANTS,
        settings: { llm_model_id: 1 } as AssistantSettings,
        columns: {
          name: `Assistant ${at}`, type: "inbound", status: "active", mode: "pipeline",
          folderId: null, phoneNumberId: null, labelIds: [],
        },
      });
      if (assistant.kind === "created") assistantIds.push(assistant.assistantId);
    }
    made.push({ id, assistantIds, key: (await accounts.createKey(id, "bench")).token });
  }
  return made;
}

function overFile(): Place {
  const folder = mkdtempSync(join(tmpdir(), "parley-bench-"));
  return {
    name: "file", env: { PARLEY_DATA_DIR: folder },
    open: () => openStorage(folder, "inline"),
    fill: async (accounts) => {
      const db = openWriter(folder, { migrate: false });
      db.exec("BEGIN");
      const now = system.now();
      for (const account of accounts) await fill(createSql(db), SIZE, { ...account, now });
      db.exec("COMMIT");
      db.exec("ANALYZE");
      db.close();
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function overPostgres(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), "parley-bench-"));
  const database = await databaseAt(folder, "durable");
  return {
    name: "postgres",
    env: {
      PARLEY_DATA_DIR: folder, PARLEY_DATABASE_URL: database.url,
      PARLEY_SECRET: "the same at every node, and long enough",
    },
    open: () => openPostgres({ url: database.url, writesMax: 1000, isSmall: true }),
    fill: async (accounts) => {
      const session = await openSession({
        url: database.url, purpose: "bench", statementMs: FILL_MS, idleMs: FILL_MS, system,
      });
      await session.run("BEGIN");
      const now = system.now();
      for (const account of accounts) await fill(session.sql, SIZE, { ...account, now });
      await session.run("COMMIT");
      await session.run("ANALYZE");
      await session.close();
    },
    close: async () => {
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Does the background work that follows commits: indexes messages, sums costs of the ledger. */
async function settle(storage: Storage, accounts: Account[]): Promise<void> {
  const messages = SIZE.conversations * MESSAGES_EACH * accounts.length;
  for (let left = messages; left > 0;) left -= await storage.inbox.indexMessages(5000);
  for (const { id } of accounts) while (await storage.costs.count(id, 2000));
}

const questionsOf = ({ id, assistantIds: [assistant] }: Account): Record<string, string> => ({
  "overview, 90 days": "overview?days=90",
  "overview, 7 days by hour": "overview?days=7&by=hour",
  "overview, 90 days of an assistant": `overview?days=90&assistant_id=${assistant}`,
  "costs by assistant": "costs?group_by=assistant",
  "costs by model": "costs?group_by=model",
  "calls, first page": "calls",
  "calls, last page": `calls?page=${Math.max(1, SIZE.calls / 100)}&per_page=100`,
  "calls of an assistant": `calls?assistant_id=${assistant}`,
  "calls by number": "calls?phone_number=%2B491510000042",
  "calls of a week": `calls?date_from=${day(60)}&date_to=${day(54)}`,
  "calls with a word": "calls?search=refund",
  "conversations, first page": "conversations",
  "conversations of an assistant": `conversations?assistant_id=${assistant}`,
  "conversations of a week": `conversations?date_from=${day(60)}&date_to=${day(54)}`,
  "conversations with a rare word": "conversations?search=refund",
  "conversations with a frequent word": "conversations?search=bike",
  "conversations with a word nobody wrote": "conversations?search=hovercraft",
  "inbox": "inbox?queue=all",
  "inbox, who waits": "inbox?queue=waiting",
  "inbox with a rare word": "inbox?queue=all&search=refund",
  "leads, first page": "leads",
  "leads by a part of the number": "leads?phone_number=0042",
  "leads of a campaign, by state": `leads?campaign_id=${id * 10_000_000 + 1}&order=active`,
  "figures of a campaign": `campaigns/${id * 10_000_000 + 1}/figures`,
  "ledger": "ledger",
});

const day = (ago: number): string =>
  new Date(Date.now() - ago * 24 * 60 * 60 * 1000).toISOString().slice(0, 10);

interface Timed { p50: number; first: number; bytes: number }

async function time(port: number, path: string, key: string): Promise<Timed> {
  const times: number[] = [];
  let bytes = 0;
  for (let asked = 0; asked < ASKED; asked += 1) {
    const startedMs = performance.now();
    const response = await fetch(`http://127.0.0.1:${port}/api/user/${path}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const body = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${body}`);
    times.push(performance.now() - startedMs);
    bytes = body.length;
  }
  const round = (ms: number): number => Number(ms.toFixed(1));
  return { first: round(times[0] ?? 0), p50: round(median(times.slice(-COUNTED))), bytes };
}

async function measure(place: Place): Promise<Record<string, Timed>> {
  const startedMs = performance.now();
  const storage = await place.open();
  const accounts = await makeAccounts(storage);
  await place.fill(accounts);
  await settle(storage, accounts);
  await storage.close();
  print(`${place.name}: filled in ${Math.round((performance.now() - startedMs) / 1000)} s`);
  const server = await startServer({
    ...place.env, PARLEY_PORT: "0", PARLEY_DEMO: "off", PARLEY_RATE_LIMITS: "off",
    PARLEY_WEBRTC: "off",
  });
  const [account] = accounts as [Account];
  const timed: Record<string, Timed> = {};
  for (const [name, path] of Object.entries(questionsOf(account))) {
    timed[name] = await time(server.port, path, account.key);
  }
  await stop(server);
  await place.close();
  return timed;
}

const only = process.env.BENCH_ONLY;
const places = [
  ...only === "postgres" ? [] : [overFile()], ...only === "file" ? [] : [await overPostgres()],
];
const found: Record<string, Record<string, Timed>> = {};
for (const place of places) found[place.name] = await measure(place);
const names = Object.keys(Object.values(found)[0] ?? {});
print(["".padEnd(40), ...Object.keys(found).map((name) => name.padStart(22))].join(""));
for (const name of names) {
  print([name.padEnd(40), ...Object.values(found).map((timed) => {
    const { p50, first, bytes } = timed[name] as Timed;
    return `${p50} ms (${first}; ${bytes})`.padStart(22);
  })].join(""));
}
const all = (name: string): number[] => Object.values(found[name] ?? {}).map(({ p50 }) => p50);
printResult("reports", Object.fromEntries(Object.keys(found).map((name) => [name, {
  p50_ms: median(all(name)), slowest_ms: percentile(all(name), 100), questions: found[name],
}])));
