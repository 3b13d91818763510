// All storage engines, and the steps that their contract tests take over one store.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { auditAccount } from "#features/accounts/money/ledger.ts";
import type { AssistantSettings } from "#features/assistants/settings.ts";
import type { BeginTurn, CompleteTurn, Conversation, FailTurn } from "#features/conversations/records.ts";
import { utcDay } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { createReader } from "#storage/engines/sqlite/reader.ts";
import { openStorage, storageOver } from "#storage/engines/sqlite/storage.ts";
import type { Storage } from "#storage/storage.ts";
import { dataRoot } from "./data-folder.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { createGuardedWriter } from "./guarded-writer.ts";
import { createManualSystem } from "#support/manual-clock.ts";

interface Engine {
  name: string;
  /** Why it cannot be tested here. */
  skip?: string | false;
  /** A store with nothing in it, or what an earlier one at the same place has left. */
  open(place: string): Promise<Storage>;
}

export const ENGINES: Engine[] = [
  {
    name: "SQLite, written in a thread",
    open: (place) => openStorage(place, "thread"),
  },
  { name: "SQLite, written by the caller", open: (place) => openStorage(place, "inline") },
  {
    name: "SQLite, each command held to its account",
    open: (place) => {
      const writer = createGuardedWriter(place);
      return Promise.resolve(storageOver(createReader(place), writer));
    },
  },
  {
    name: "PostgreSQL",
    skip: withoutPostgres,
    open: async (place) => {
      const { url } = await databaseAt(place);
      return openPostgres({ url, writesMax: 1000, mayForget: true });
    },
  },
];

/** A store of its own, which is removed when the test, or the file, is over. */
export async function openFor(
  context: { after(end: () => Promise<void>): void }, engine: Engine,
): Promise<Storage> {
  const place = mkdtempSync(join(dataRoot(), "parley-test-"));
  const storage = await engine.open(place);
  context.after(async () => {
    await storage.close();
    rmSync(place, { recursive: true, force: true });
  });
  return storage;
}

export const PRICE = 10_000;
export const system = createManualSystem();
export const DAY = utcDay(system.now());
export const typesOf = (events: CommittedEvent[]): string[] => events.map(({ type }) => type);

/** Steps that every test takes, over one store. */
export function createWorld(storage: Storage) {
  const newConversation = async (balanceMicros: number): Promise<Conversation> => {
    const now = system.now();
    const { id: accountId } = await storage.accounts.createAccount(
      { name: "A", email: "", plan: "self-hosted", now });
    if (balanceMicros > 0) {
      await storage.accounts.credit({
        accountId, amountMicros: balanceMicros, reference: system.uuid(), now,
      });
    }
    const uuid = system.uuid();
    const assistant = await storage.assistants.create({
      uuid, accountId, now, settings: {} as AssistantSettings, assistantsMax: 9,
      columns: {
        name: "A", type: "inbound", status: "active", mode: "pipeline", folderId: null,
        phoneNumberId: null, labelIds: [],
      },
    });
    assert.ok(assistant.kind === "created");
    return another({ accountId, assistantId: assistant.assistantId });
  };
  /** One more conversation of the same account. */
  const another = async (
    { accountId, assistantId }: Pick<Conversation, "accountId" | "assistantId">,
  ): Promise<Conversation> => {
    const created = await storage.conversations.create({
      uuid: system.uuid(), accountId, now: system.now(), type: "widget", variables: {},
      initialMessage: "", externalIdentifier: null, visitor: null, priceMicros: 0, inactivityMinutes: 30,
      dailyCapMicros: null, day: DAY, assistant: { id: assistantId, uuid: system.uuid() },
    });
    assert.ok(created.kind === "created");
    return created.conversation;
  };
  const begin = ({ accountId, uuid }: Conversation, how: Partial<BeginTurn> = {}) =>
    storage.conversations.beginTurn({
      accountId, conversationUuid: uuid, text: "When?", idempotencyKey: null, requestHash: "0",
      messagePriceMicros: PRICE, dailyCapMicros: null, day: DAY, messagesMax: 100,
      now: system.now(), ...how,
    });
  const complete = (turnId: number, conversation: Conversation, how: Partial<CompleteTurn> = {}) =>
    storage.conversations.completeTurn({
      turnId, conversation, text: "At nine.", functionCalls: [], stopped: false, truncated: false,
      usage: null, ends: false, now: system.now(), ...how,
    });
  /** A web call with 1000 reserved for it; resolves to its id. */
  const newCall = async (
    { accountId, assistantId }: Conversation, origin: object | null = null,
  ): Promise<number> => {
    const begun = await storage.calls.create({
      accountId, type: "web", assistant: { id: assistantId, uuid: "" }, conversationUuid: null,
      assistantPhone: null, customerPhone: null, variables: {}, origin, now: system.now(),
      dialling: { countries: [], perMinute: null }, parallelMax: 9, reserveMinMicros: 1,
      reserveMaxMicros: 1000, priceMicrosPerMinute: 1000,
    } as never);
    assert.ok(begun.kind === "created");
    return begun.call.id;
  };
  return {
    newConversation,
    newCall,
    another,
    begin,
    complete,
    started: async (conversation: Conversation, how: Partial<BeginTurn> = {}) => {
      const begun = await begin(conversation, how);
      assert.ok(begun.kind === "started", begun.kind);
      return begun;
    },
    fail: (turnId: number, conversation: Conversation, how: Partial<FailTurn> = {}) =>
      storage.conversations.failTurn({
        turnId, conversation, reason: "failed", error: "No.", cause: null, now: system.now(), ...how,
      }),
    said: async ({ id }: Conversation) =>
      (await storage.conversations.history(id)).messages.map(({ content }) => content),
    /** Balance and reserved money, with which the whole ledger must agree. */
    money: async (accountId: number): Promise<[balance: number, reserved: number]> => {
      const claims = await storage.statements.claims(accountId);
      assert.ok(claims);
      const entries = await storage.statements.entries(accountId, 0, claims.newest, 10_000);
      assert.deepEqual(await auditAccount(claims.totals, entries, claims.openMicros), []);
      return [claims.totals.balanceMicros, claims.totals.reservedMicros];
    },
  };
}
