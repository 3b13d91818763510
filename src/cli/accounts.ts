// The account, key and balance commands of the `parley` program.
import { ALL_SCOPES, type Account, type Scope } from "#features/accounts/accounts.ts";
import { msOfMoment } from "#core/days.ts";
import { dollarsFromMicros, formatMicros } from "#core/money.ts";
import { readPlans } from "#core/price-lists.ts";
import { createSystem, isoMicros, isoOrNull } from "#core/system.ts";
import { isEmail } from "#features/accounts/people/users.ts";
import {
  ACCOUNT, chooseAccount, readAmount, table, text, UsageError, withAccount, withStorage,
  type Command, type Invocation,
} from "./command.ts";

const accountValue = (row: Account) => ({
  account_id: row.id,
  name: row.name,
  email: row.email,
  plan: row.plan,
  balance: dollarsFromMicros(row.balanceMicros),
  reserved: dollarsFromMicros(row.reservedMicros),
});

function readScopes(values: Invocation["values"]): Scope[] {
  const given = (text(values, "scopes") ?? "read,write").split(",");
  const scopes = ALL_SCOPES.filter((scope) => given.includes(scope));
  if (scopes.length !== given.length) throw new UsageError("--scopes must be read, write or both");
  return scopes;
}

function readExpiry(values: Invocation["values"]): number | null {
  const given = text(values, "expires-at");
  if (given === undefined) return null;
  const ms = msOfMoment(given);
  if (ms === null) throw new UsageError("--expires-at must be an ISO 8601 date, such as 2027-01-31");
  if (ms * 1000 <= createSystem().now()) throw new UsageError("--expires-at is in the past: the "
    + "key would never work");
  return ms * 1000;
}

function writeEnd(expiresAt: number | null, now: number): string {
  if (expiresAt === null) return "never";
  return `${isoMicros(expiresAt)}${expiresAt <= now ? ", expired" : ""}`;
}

const EXIT_UNKNOWN_PLAN = 2;

function readPlan(config: Invocation["config"], given: string | undefined): string {
  const names = (config.PARLEY_PLANS_FILE ?? readPlans()).names();
  if (given === undefined) throw new UsageError(`PLAN is required: one of ${names.join(", ")}`);
  if (names.includes(given)) return given;
  throw new UsageError(
    `there is no plan ${given}: the plans are ${names.join(", ")}`, EXIT_UNKNOWN_PLAN);
}

const createAccount: Command = {
  name: "account create",
  takes: "--name N [--email E] [--balance 5.00]",
  summary: "Create an account and its API key (shown only once)",
  options: { name: { type: "string" }, email: { type: "string" }, balance: { type: "string" } },
  run: ({ config, values }) => {
    const name = text(values, "name");
    if (name === undefined) throw new UsageError("--name is required");
    const micros = values.balance === undefined ? 0 : readAmount(text(values, "balance"), "--balance");
    if (micros < 0) throw new UsageError("--balance must not be negative");
    const email = text(values, "email") ?? "";
    if (email !== "" && !isEmail(email)) throw new UsageError(`${email} is not an e-mail address`);
    return withStorage(config, async (_storage, accounts) => {
      const created = await accounts.create(name, email);
      if (micros > 0) await accounts.credit(created.id, micros);
      const { token } = await accounts.createKey(created.id, "cli");
      const value = {
        account_id: created.id, api_key: token, name, balance: dollarsFromMicros(micros),
      };
      const lines = [
        ["account_id", created.id], ["api_key", token], ["balance", formatMicros(micros)],
      ];
      return { value, text: table(lines) };
    });
  },
};

const listAccounts: Command = {
  name: "account list",
  takes: "",
  summary: "List accounts",
  options: {},
  run: ({ config }) =>
    withStorage(config, async (_storage, accounts) => {
      const rows = await accounts.list();
      const lines = rows.map((row) => [
        row.id, row.name, row.plan, formatMicros(row.balanceMicros),
      ]);
      const head = ["account_id", "name", "plan", "balance"];
      return { value: rows.map(accountValue), text: table([head, ...lines]) };
    }),
};

const setPlan: Command = {
  name: "account plan",
  takes: "PLAN --account ID",
  summary: "Set an account's plan: its limits on tools, campaigns and concurrent calls",
  words: 1,
  options: ACCOUNT,
  run: (invocation) => {
    const plan = readPlan(invocation.config, invocation.positionals[0]);
    return withAccount(invocation, async ({ id }, accounts) => {
      if (!await accounts.setPlan(id, plan)) throw new Error(`there is no account ${id}`);
      return { value: { account_id: id, plan }, text: `account ${id} has the plan ${plan}` };
    });
  },
};

const createKey: Command = {
  name: "key create",
  takes: "--account ID [--name N] [--scopes read,write] [--expires-at ISO]",
  summary: "Create an API key (shown only once)",
  options: {
    ...ACCOUNT,
    name: { type: "string" },
    scopes: { type: "string" },
    "expires-at": { type: "string" },
  },
  run: (invocation) =>
    withAccount(invocation, async ({ id }, accounts) => {
      const { values } = invocation;
      const options = { scopes: readScopes(values), expiresAt: readExpiry(values) };
      const { key, token } = await accounts.createKey(id, text(values, "name") ?? "cli", options);
      const value = { account_id: id, key_id: key.id, api_key: token };
      return { value, text: table([["key_id", key.id], ["api_key", token]]) };
    }),
};

const listKeys: Command = {
  name: "key list",
  takes: "--account ID",
  summary: "List API keys that are not revoked",
  options: ACCOUNT,
  run: (invocation) =>
    withAccount(invocation, async ({ id }, accounts) => {
      const now = createSystem().now();
      const keys = await accounts.listKeys(id);
      const rows = keys.map((key) => ({
        key_id: key.id,
        name: key.name,
        scopes: key.scopes,
        created_at: isoMicros(key.createdAt),
        last_used_at: isoOrNull(key.lastUsedAt),
        expires_at: isoOrNull(key.expiresAt),
      }));
      const lines = keys.map(({ id: keyId, name, scopes, createdAt, expiresAt }) => [
        keyId, name, scopes.join(","), isoMicros(createdAt), writeEnd(expiresAt, now),
      ]);
      const head = ["key_id", "name", "scopes", "created_at", "expires_at"];
      return { value: rows, text: table([head, ...lines]) };
    }),
};

const revokeKey: Command = {
  name: "key revoke",
  takes: "KEY_ID [--account ID]",
  summary: "Revoke an API key; it stops working at once",
  words: 1,
  options: ACCOUNT,
  run: ({ config, values, positionals }) =>
    withStorage(config, async (storage, accounts) => {
      const keyId = Number((positionals[0] ?? "").split("|")[0]);
      if (!Number.isSafeInteger(keyId) || keyId <= 0) throw new UsageError("KEY_ID must be a number");
      const key = await storage.accounts.findKey(keyId);
      const owner = values.account === undefined
        ? key?.accountId
        : (await chooseAccount(accounts, values)).id;
      const revoked = owner !== undefined && (await accounts.revokeKey(owner, keyId));
      if (!revoked) throw new Error(`there is no active key ${keyId}`);
      return { value: { key_id: keyId, revoked: true }, text: `key ${keyId} is revoked` };
    }),
};

const addBalance: Command = {
  name: "balance add",
  takes: "--account ID AMOUNT [--reference R]",
  summary: "Add money; repeating a reference adds it once; --amount=-5.00 deducts",
  words: 1,
  options: { ...ACCOUNT, amount: { type: "string" }, reference: { type: "string" } },
  run: (invocation) => {
    const { values, positionals } = invocation;
    const micros = readAmount(positionals[0] ?? text(values, "amount"), "AMOUNT");
    if (micros === 0) throw new UsageError("AMOUNT must not be zero");
    return withAccount(invocation, async ({ id }, accounts) => {
      const reference = text(values, "reference");
      const outcome = await accounts.credit(
        id, micros, reference === undefined ? undefined : `credit:${reference}`);
      if (outcome.kind === "not_found") throw new Error(`there is no account ${id}`);
      if (outcome.kind === "below_zero") throw new Error("the balance would fall below zero");
      const { balanceMicros } = outcome;
      const repeated = outcome.kind === "repeated";
      return {
        value: { account_id: id, balance: dollarsFromMicros(balanceMicros), repeated },
        text: `balance ${formatMicros(balanceMicros)}${repeated ? " (already added under this reference)" : ""}`,
      };
    });
  },
};

const showBalance: Command = {
  name: "balance show",
  takes: "--account ID",
  summary: "Show an account's balance and the reserved part of it",
  options: ACCOUNT,
  run: (invocation) =>
    withAccount(invocation, async (row) => {
      const lines = [
        ["balance", formatMicros(row.balanceMicros)], ["reserved", formatMicros(row.reservedMicros)],
      ];
      return { value: accountValue(row), text: table(lines) };
    }),
};

export const accountCommands: Command[] = [
  createAccount, listAccounts, setPlan, createKey, listKeys, revokeKey, addBalance, showBalance,
];
