// Durable charges through the real store: begin (message, reservation, turn, event) and
// complete (reply, ledger entry, event), over 1,000 accounts, at several levels of concurrency.
// Compared with the same commands as one transaction each, and both ways of group commit.
//
// A charge is both commands. `plain` is what a server does that runs each command in a transaction
// of its own with synchronous=FULL.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSystem } from "#core/system.ts";
import type { BeginOutcome } from "#features/conversations/records.ts";
import { createBatchRunner } from "#storage/engines/sqlite/batch.ts";
import { openWriter } from "#storage/engines/sqlite/database.ts";
import { commandsOver } from "#storage/engines/sqlite/sql.ts";
import { createInlineWriter, startThreadWriter } from "#storage/engines/sqlite/writer.ts";
import { NOBODY } from "#storage/nodes/nodes.ts";
import type { AllCommands } from "#storage/commands.ts";
import type { Writer } from "#storage/writer.ts";
import { percentile, print, printResult } from "./report.ts";

const ACCOUNTS = 1000;
const DEPTHS = [1, 16, 128, 512];
const SECONDS_PER_RUN = Number(process.env.BENCH_SECONDS ?? 2);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);

const system = createSystem();

interface Subject {
  uuid: string;
  id: number;
  accountId: number;
}

/** A fresh database with accounts that never run dry and one conversation each. */
async function prepare(dataDir: string): Promise<Subject[]> {
  const db = openWriter(dataDir, { migrate: true });
  const subjects: Subject[] = [];
  db.exec("BEGIN");
  const commands = commandsOver(db);
  const insertAssistant = db.prepare(`
    INSERT INTO assistants (uuid, account_id, name, type, status, mode, settings, created_at, updated_at)
    VALUES (@uuid, @accountId, 'Bench', 'inbound', 'active', 'pipeline', '{}', 0, 0)`);
  for (let number = 0; number < ACCOUNTS; number += 1) {
    const now = system.now();
    const account = await commands["accounts.create"]({ name: "Bench", email: "", plan: "bench", now });
    await commands["accounts.credit"]({
      accountId: account.id, amountMicros: 1e12, reference: `bench:${number}`, now,
    });
    const uuid = system.uuid();
    const { lastInsertRowid } = insertAssistant.run({ uuid, accountId: account.id });
    const created = await commands["conversations.create"]({
      uuid: system.uuid(), accountId: account.id,
      assistant: { id: Number(lastInsertRowid), uuid }, type: "widget", variables: {},
      externalIdentifier: null, visitor: null, initialMessage: "", priceMicros: 0, dailyCapMicros: null, day: "",
      inactivityMinutes: 30, now,
    });
    if (created.kind !== "created") throw new Error("setup failed");
    const { conversation } = created;
    subjects.push({ uuid: conversation.uuid, id: conversation.id, accountId: account.id });
  }
  db.exec("COMMIT");
  db.close();
  return subjects;
}

const TEXT = "When are you open on Saturday, and what does a standard service cost?";
const REPLY = "On Saturday we are open from ten to two. A standard service costs 79 dollars.";

const beginArgs = (subject: Subject) => ({
  accountId: subject.accountId, conversationUuid: subject.uuid, text: TEXT,
  nodeId: NOBODY, idempotencyKey: system.uuid(), requestHash: "0", messagePriceMicros: 10_000, dailyCapMicros: null,
  day: "2026-01-01", messagesMax: 1e9, now: system.now(),
});
const completeArgs = (subject: Subject, begun: BeginOutcome) => {
  if (begun.kind !== "started") throw new Error(`begin: ${begun.kind}`);
  const conversation = { ...subject, assistantId: 1 };
  return {
    nodeId: NOBODY,
    turnId: begun.turnId, conversation, text: REPLY, functionCalls: [], stopped: false,
    truncated: false, usage: null, ends: false,
    now: system.now(),
  };
};

interface Figures {
  perSecond: number;
  /** The whole process, client included. */
  cpuUs: number;
  p50Ms: number;
  p99Ms: number;
}

function figures(latencies: number[], seconds: number, cpu: NodeJS.CpuUsage): Figures {
  return {
    perSecond: Math.round(latencies.length / seconds),
    cpuUs: Math.round((cpu.user + cpu.system) / latencies.length),
    p50Ms: percentile(latencies, 50),
    p99Ms: percentile(latencies, 99),
  };
}

async function throughWriter(
  writer: Writer<AllCommands>, subjects: Subject[], depth: number,
): Promise<Figures> {
  const latencies: number[] = [];
  const before = process.cpuUsage();
  const startedMs = performance.now();
  const endMs = startedMs + SECONDS_PER_RUN * 1000;
  let next = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const subject = subjects[next++ % subjects.length] as Subject;
      const at = performance.now();
      const begun = await writer.write("turns.begin", beginArgs(subject));
      await writer.write("turns.complete", completeArgs(subject, begun));
      latencies.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: depth }, client));
  return figures(latencies, (performance.now() - startedMs) / 1000, process.cpuUsage(before));
}

async function plain(dataDir: string, subjects: Subject[]): Promise<Figures> {
  const db = openWriter(dataDir, { migrate: true });
  const run = createBatchRunner(db, () => commandsOver(db));
  const one = async (command: string, args: unknown): Promise<unknown> => {
    const [outcome] = await run([{ command, args }]);
    if (outcome?.kind !== "done") throw new Error("plain failed");
    return outcome.value;
  };
  const latencies: number[] = [];
  const before = process.cpuUsage();
  const startedMs = performance.now();
  for (let next = 0; performance.now() < startedMs + SECONDS_PER_RUN * 1000; next += 1) {
    const subject = subjects[next % subjects.length] as Subject;
    const at = performance.now();
    const begun = await one("turns.begin", beginArgs(subject)) as BeginOutcome;
    await one("turns.complete", completeArgs(subject, begun));
    latencies.push(performance.now() - at);
  }
  const measured = figures(
    latencies, (performance.now() - startedMs) / 1000, process.cpuUsage(before));
  db.close();
  return measured;
}

const WRITERS: Record<string, (dataDir: string) => Promise<Writer<AllCommands>>> = {
  thread: startThreadWriter,
  inline: (dataDir) => Promise.resolve(createInlineWriter(dataDir)),
};

async function inFolder<T>(
  run: (dataDir: string, subjects: Subject[]) => Promise<T>,
): Promise<T> {
  const dataDir = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), "parley-bench-"));
  try {
    return await run(dataDir, await prepare(dataDir));
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

const results: Record<string, Figures[]> = {};
for (let round = 0; round < ROUNDS; round += 1) {
  (results.plain ??= []).push(await inFolder(plain));
  for (const [name, open] of Object.entries(WRITERS)) {
    for (const depth of DEPTHS) {
      const measured = await inFolder(async (dataDir, subjects) => {
        const writer = await open(dataDir);
        const result = await throughWriter(writer, subjects, depth);
        await writer.close();
        return result;
      });
      (results[`${name}_${depth}`] ??= []).push(measured);
    }
  }
}

const medians = Object.fromEntries(
  Object.entries(results).map(([name, rounds]) => [
    name,
    rounds.sort((a, b) => a.perSecond - b.perSecond)[Math.floor(rounds.length / 2)] as Figures,
  ]),
);
print("durable charges a second (a charge is begin + complete), median of rounds");
for (const [name, { perSecond, cpuUs, p50Ms, p99Ms }] of Object.entries(medians)) {
  print(`${name.padEnd(12)} ${String(perSecond).padStart(7)}/s   CPU ${cpuUs} µs   p50 ${p50Ms.toFixed(2)} ms   p99 ${p99Ms.toFixed(2)} ms`);
}
const base = medians.plain?.perSecond ?? 1;
printResult("charging", {
  accounts: ACCOUNTS,
  medians,
  ratio_thread_512_to_plain: Number(((medians.thread_512?.perSecond ?? 0) / base).toFixed(2)),
  ratio_inline_512_to_plain: Number(((medians.inline_512?.perSecond ?? 0) / base).toFixed(2)),
});
