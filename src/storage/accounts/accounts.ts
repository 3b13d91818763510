// Accounts and API keys in the database: commands for the writer, reads for the main thread.
import type { Account, AccountStore, ApiKey, CreditOutcome, NewKey, Scope, StoredKey, Trouble } from "#features/accounts/accounts.ts";
import type { By } from "#features/accounts/audit.ts";
import type { Role } from "#features/accounts/people/roles.ts";
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import type { Author } from "#events/events.ts";
import { createNoteAudit } from "./audit-log.ts";
import { createLedger } from "./ledger.ts";
import { orNull, type Reader, type Sql } from "#storage/sql.ts";
import { perAccount } from "#storage/sweeps.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

interface AccountRow {
  id: number;
  name: string;
  email: string;
  plan: string;
  time_zone: string | null;
  balance_micros: number;
  reserved_micros: number;
  created_at: number;
  trouble_at: number | null;
  trouble_reason: Trouble["reason"] | null;
  trouble_conversation: string | null;
}
interface KeyRow {
  id: number;
  account_id: number;
  name: string;
  secret_hash: string;
  scopes: string;
  role: Role;
  made_by: string | null;
  expires_at: number | null;
  last_used_at: number | null;
  revoked_at: number | null;
  created_at: number;
}

const ACCOUNT = `id, name, email, plan, time_zone, balance_micros, reserved_micros, created_at,
  trouble_at, trouble_reason, trouble_conversation`;
const KEY = `id, account_id, name, secret_hash, scopes, role, made_by, expires_at, last_used_at,
  revoked_at, created_at`;

function accountFromRow(row: AccountRow): Account {
  return {
    id: row.id,
    name: row.name,
    email: row.email,
    plan: row.plan,
    timeZone: row.time_zone,
    balanceMicros: row.balance_micros,
    reservedMicros: row.reserved_micros,
    createdAt: row.created_at,
    trouble: row.trouble_at === null || row.trouble_reason === null ? null : {
      reason: row.trouble_reason, conversationUuid: row.trouble_conversation, at: row.trouble_at,
    },
  };
}

function keyFromRow(row: KeyRow): ApiKey {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    scopes: row.scopes.split(",") as Scope[],
    role: row.role,
    madeBy: row.made_by === null ? null : (JSON.parse(row.made_by) as Author),
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
    createdAt: row.created_at,
  };
}

/** Null: the key was made at the command line. */
function authorText({ actor: { kind, ...author } }: By): string | null {
  return kind === "system" ? null : JSON.stringify(author);
}

export function accountCommands(sql: Sql) {
  const ledger = createLedger(sql);
  const insertAccount = sql.prepare<object, AccountRow>(`
    INSERT INTO accounts (name, email, plan, created_at) VALUES (@name, @email, @plan, @now)
    RETURNING ${ACCOUNT}`);
  const setPlan = sql.prepare("UPDATE accounts SET plan = @plan WHERE id = @accountId");
  const setZone = sql.prepare("UPDATE accounts SET time_zone = @timeZone WHERE id = @accountId");
  const insertKey = sql.prepare<object, KeyRow>(`
    INSERT INTO api_keys (account_id, name, secret_hash, scopes, role, made_by, expires_at, created_at)
    VALUES (@accountId, @name, @secretHash, @scopes, @role, @madeBy, @expiresAt, @now)
    RETURNING ${KEY}`);
  const note = createNoteAudit(sql);
  const revoke = sql.prepare(`
    UPDATE api_keys SET revoked_at = @now
    WHERE id = @keyId AND account_id = @accountId AND revoked_at IS NULL`);
  const touch = sql.prepare(
    "UPDATE api_keys SET last_used_at = @at WHERE id = @keyId AND account_id = @accountId");
  const balance = sql.prepare<object, { balance_micros: number }>(
    "SELECT balance_micros FROM accounts WHERE id = @accountId");
  const entered = sql.prepare<object, { account_id: number }>(
    "SELECT account_id FROM ledger WHERE reference = @reference");

  return {
    "accounts.create": async (
      args: { name: string; email: string; plan: string; now: Instant },
    ) => accountFromRow(await insertAccount.one(args)),
    "accounts.setPlan": async (args: { accountId: number; plan: string }) =>
      (await setPlan.run(args)).changes > 0,
    "accounts.setTimeZone": async (args: { accountId: number; timeZone: string | null }) =>
      (await setZone.run(args)).changes > 0,
    "accounts.createKey": async (args: NewKey) => {
      const { accountId, name, role, by, now } = args;
      const scopes = args.scopes.join(",");
      const madeBy = authorText(by);
      const row = await insertKey.one({ ...args, scopes, madeBy });
      const object = { type: "api_key", id: String(row.id) };
      const details = { name, scopes, role };
      await note({ accountId, now, note: { ...by, action: "api_key.create", object, details } });
      return keyFromRow(row);
    },
    "accounts.revokeKey": async (
      args: { accountId: number; keyId: number; by: By; now: Instant },
    ) => {
      if ((await revoke.run(args)).changes === 0) return false;
      const { accountId, keyId, by, now } = args;
      const object = { type: "api_key", id: String(keyId) };
      await note({ accountId, now, note: { ...by, action: "api_key.revoke", object, details: {} } });
      return true;
    },
    "accounts.touchKeys": async (
      { accountId, uses }: { accountId: number; uses: { keyId: number; at: Instant }[] },
    ) => {
      for (const { keyId, at } of uses) await touch.run({ accountId, keyId, at });
    },
    "accounts.credit": async (args: {
      accountId: number;
      amountMicros: Micros;
      reference: string;
      now: Instant;
    }): Promise<CreditOutcome> => {
      const account = await balance.get({ accountId: args.accountId });
      if (!account) return { kind: "not_found" };
      if (await entered.get({ reference: args.reference })) {
        return { kind: "repeated", balanceMicros: account.balance_micros };
      }
      const posted = await ledger.enter({ ...args, kind: "credit" });
      if (!posted) return { kind: "below_zero" };
      return { kind: "entered", balanceMicros: posted.balanceMicros, events: posted.events };
    },
  };
}

export function createAccountStore(
  reader: Reader, writer: WriterOf<typeof accountCommands>,
): AccountStore {
  const list = reader.prepare<object, AccountRow>(`SELECT ${ACCOUNT} FROM accounts ORDER BY id`);
  const find = reader.prepare<object, AccountRow>(
    `SELECT ${ACCOUNT} FROM accounts WHERE id = @accountId`);
  const keys = reader.prepare<object, KeyRow>(`
    SELECT ${KEY} FROM api_keys WHERE account_id = @accountId AND revoked_at IS NULL ORDER BY id`);
  const key = reader.prepare<object, KeyRow>(`SELECT ${KEY} FROM api_keys WHERE id = @keyId`);
  return {
    createAccount: (args) => writer.write("accounts.create", args),
    ...writes(writer, "accounts", "setPlan", "setTimeZone", "createKey", "revokeKey", "credit"),
    listAccounts: async () => (await list.all({})).map(accountFromRow),
    findAccount: async (accountId) => orNull(await find.get({ accountId }), accountFromRow),
    listKeys: async (accountId) => (await keys.all({ accountId })).map(keyFromRow),
    findKey: async (keyId): Promise<StoredKey | null> => {
      const row = await key.get({ keyId });
      return row ? { ...keyFromRow(row), secretHash: row.secret_hash } : null;
    },
    touchKeys: async (uses) => {
      await perAccount(uses, (accountId, own) =>
        writer.write("accounts.touchKeys", { accountId, uses: own }));
    },
  };
}
