// The shape of a `parley` command, and what several of them need.
import type { ParseArgsConfig } from "node:util";
import { createAccounts, type Account, type Accounts } from "#features/accounts/accounts.ts";
import type { Config } from "#config/config.ts";
import { microsFromDecimal, type Micros } from "#core/money.ts";
import { createSystem } from "#core/system.ts";
import { createMemoryBus } from "#events/bus.ts";
import { openConfigured } from "#storage/engines/open.ts";
import type { Storage } from "#storage/storage.ts";

export interface Invocation {
  config: Config;
  values: Record<string, unknown>;
  positionals: string[];
}

interface Result {
  /** What `--json` prints. */
  value: unknown;
  /** What is printed for a person. */
  text: string;
  /** The command worked, but what it checked is wrong: exit code 1. */
  failed?: boolean;
}

export interface Command {
  name: string;
  /** Its arguments, for the help. */
  takes: string;
  summary: string;
  /** How many arguments it takes beside its options; absent: none. */
  words?: number;
  options: NonNullable<ParseArgsConfig["options"]>;
  run(invocation: Invocation): Promise<Result>;
}

/** The command line itself is at fault. */
export class UsageError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 64) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Opens the storage inline for a single task and closes it in any case. */
export async function withStorage<T>(
  config: Config,
  work: (storage: Storage, accounts: Accounts) => Promise<T>,
): Promise<T> {
  const storage = await openConfigured(config, "inline", (migration) =>
    process.stderr.write(`parley: bringing the database up to date (${migration})\n`));
  try {
    const accounts = createAccounts({
      store: storage.accounts, system: createSystem(), bus: createMemoryBus(),
    });
    return await work(storage, accounts);
  } finally {
    await storage.close();
  }
}

export function text(values: Invocation["values"], name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function readAmount(given: string | undefined, what: string): Micros {
  const micros = given === undefined ? null : microsFromDecimal(given);
  if (micros === null) throw new UsageError(`${what} must be an amount such as 5.00`);
  return micros;
}

/** The option that `withAccount` reads. */
export const ACCOUNT = { account: { type: "string" } } as const;

/** Like `withStorage`, with the account the command line means. */
export const withAccount = <T>(
  { config, values }: Invocation,
  work: (account: Account, accounts: Accounts, storage: Storage) => Promise<T>,
): Promise<T> =>
  withStorage(config, async (storage, accounts) =>
    work(await chooseAccount(accounts, values), accounts, storage));

/** The account named by --account; without the option, the only account there is. */
export async function chooseAccount(
  accounts: Accounts, values: Invocation["values"],
): Promise<Account> {
  const given = text(values, "account");
  const all = await accounts.list();
  if (given === undefined && all.length === 1 && all[0]) return all[0];
  if (all.length === 0) {
    throw new Error("there is no account yet: `parley account create --name NAME` makes one");
  }
  if (given === undefined) throw new UsageError("--account ID is required: see `parley account list`");
  const account = /^\d+$/.test(given) ? await accounts.find(Number(given)) : null;
  if (!account) throw new Error(`there is no account ${given}`);
  return account;
}

/** Columns padded to their widest cell. */
export function table(rows: (string | number)[][]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => String(row[column] ?? "").length)));
  return rows
    .map((row) => row.map((cell, column) => String(cell).padEnd(widths[column] ?? 0)).join("  ").trimEnd())
    .join("\n");
}
