// One transaction for the commands of several accounts: those of one account run in order, accounts
// run side by side on the one connection. Used by writer.ts.
//
// READ COMMITTED under one advisory lock per account isolates the commands of an account on every
// node. SERIALIZABLE was rejected: it also aborts unrelated transactions and needs the same retry.
// Row locks were rejected too: commands read before they write.
import { StorageFailure } from "#core/faults.ts";
import type { Lock } from "#storage/locks.ts";
import { endpointsOf } from "#storage/webhooks/outbox.ts";
import type { Commands } from "./commands.ts";
import { isStale } from "./reader.ts";
import { ConnectionLost, FULL, PASSING, stateOf, type Session } from "./session.ts";

export interface Request {
  command: string;
  args: unknown;
  /** It ends something that has begun: it waits for room, and later ends wait behind it. */
  isPatient: boolean;
}

/** What waits under one lock, in order. */
export interface Share {
  lock: Lock;
  requests: Request[];
}

export type Outcome =
  | { kind: "done"; value: unknown }
  /** `refused`: the database did not take it, or an end before it; it may take it later. */
  | { kind: "threw" | "refused"; error: unknown };

type Committed =
  | { kind: "committed"; outcomes: Outcome[][] }
  /** Nothing has happened; the batch can be retried, perhaps on another session. */
  | { kind: "again"; error: unknown }
  /** The connection was lost during COMMIT: the transaction's status tells what happened. */
  | { kind: "unknown"; transaction: string; outcomes: Outcome[][] };

const ACCOUNTS = 7301;
const GLOBALS = 7302;
const GLOBAL_NUMBERS = {
  accounts: 1, numbers: 2, nodes: 3, messages: 4, passwords: 5, files: 6,
} as const;

const isPassing = (error: unknown): boolean =>
  error instanceof ConnectionLost || isStale(error) || PASSING.has(stateOf(error) ?? "");

const isRefusal = (error: unknown): boolean =>
  error instanceof StorageFailure || FULL.test(stateOf(error) ?? "");

/** The outcome of a command that ended with this error. */
export const failed = (error: unknown): Outcome =>
  ({ kind: isRefusal(error) ? "refused" : "threw", error });

/** Locks are taken in the same order everywhere, accounts before globals, so nothing deadlocks. */
const lockSql = `
  SELECT pg_advisory_xact_lock(number, id) AS held,
    CAST(pg_current_xact_id() AS TEXT) AS transaction
  FROM (
    SELECT * FROM unnest(CAST(@classes AS INTEGER[]), CAST(@ids AS INTEGER[])) AS lock (number, id)
    ORDER BY number, id
  ) AS wanted`;

/**
 * Begins the transaction and takes the shares' locks; resolves to the transaction's id. Commands
 * are sent without waiting for it.
 */
async function begin(session: Session, shares: Share[]): Promise<string> {
  const locks = shares.map(({ lock }) => ("account" in lock
    ? { number: ACCOUNTS, id: lock.account }
    : { number: GLOBALS, id: GLOBAL_NUMBERS[lock.global] }));
  const begun = session.run("BEGIN");
  const locked = session.sql.prepare<object, { transaction: string }>(lockSql).one({
    classes: locks.map(({ number }) => number), ids: locks.map(({ id }) => id),
  });
  // Another session may have changed the endpoints; changes to them are made under the lock.
  const accounts = shares.flatMap(({ lock }) => ("account" in lock ? [lock.account] : []));
  const known = endpointsOf(session.sql).read(accounts);
  const [, { transaction }] = await Promise.all([begun, locked, known]);
  return transaction;
}

async function rollBack(session: Session): Promise<void> {
  if (session.isLost()) return;
  await session.idle();
  await session.run("ROLLBACK").catch(() => session.destroy());
}

async function runShare(commands: Commands, { requests }: Share): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const { command, args } of requests) {
    outcomes.push({ kind: "done", value: await commands.run(command, args) });
  }
  return outcomes;
}

/** Runs the commands one after another; one that throws is undone alone. */
async function runGuarded(
  session: Session, commands: Commands, shares: Share[],
): Promise<Outcome[][]> {
  const runOne = async ({ command, args }: Request): Promise<Outcome> => {
    await session.run("SAVEPOINT command");
    try {
      const value = await commands.run(command, args);
      await session.idle();
      await session.run("RELEASE command");
      return { kind: "done", value };
    } catch (error) {
      if (isPassing(error)) throw error;
      await session.idle();
      await session.run("ROLLBACK TO command");
      await session.run("RELEASE command");
      return failed(error);
    }
  };
  const all: Outcome[][] = [];
  for (const { requests } of shares) {
    const outcomes: Outcome[] = [];
    let refused: Outcome | null = null;
    for (const request of requests) {
      const outcome: Outcome = request.isPatient && refused ? refused : await runOne(request);
      if (request.isPatient && outcome.kind === "refused") refused = outcome;
      outcomes.push(outcome);
    }
    all.push(outcomes);
  }
  return all;
}

/** Null: a command threw, and the transaction is to be rolled back. */
async function runPlain(
  commands: Commands, shares: Share[],
): Promise<Outcome[][] | null> {
  const ended = await Promise.allSettled(shares.map((share) => runShare(commands, share)));
  const errors = ended.flatMap((share) => (share.status === "rejected" ? [share.reason] : []));
  const passing: unknown = errors.find(isPassing);
  if (passing !== undefined) throw passing;
  if (errors.length > 0) return null;
  return ended.map((share) => (share.status === "fulfilled" ? share.value : []));
}

async function transact(
  session: Session, shares: Share[],
  run: () => Promise<Outcome[][] | null>,
): Promise<Committed | null> {
  const opening = begin(session, shares);
  opening.catch(() => undefined);
  try {
    const outcomes = await run();
    const transaction = await opening;
    if (outcomes === null) {
      await rollBack(session);
      return null;
    }
    await session.idle();
    return await commit(session, transaction, outcomes);
  } catch (thrown) {
    // When a lock could not be had in time, everything after it fails for another reason.
    const error: unknown = await opening.then(() => thrown, (first: unknown) => first);
    await rollBack(session);
    if (isStale(error)) session.destroy();
    if (isPassing(error)) return { kind: "again", error };
    throw error;
  }
}

async function commit(
  session: Session, transaction: string, outcomes: Outcome[][],
): Promise<Committed> {
  try {
    const done = await session.run("COMMIT");
    if (done === "COMMIT") return { kind: "committed", outcomes };
    return { kind: "again", error: new Error("the transaction had failed before its COMMIT") };
  } catch {
    session.destroy();
    return { kind: "unknown", transaction, outcomes };
  }
}

/**
 * Runs the shares in one transaction. A command that throws takes no other down: commands depend on
 * nothing but the database and their arguments, so all are undone and run again one by one.
 */
export async function runBatch(
  session: Session, commands: Commands, shares: Share[],
): Promise<Committed> {
  const plain = await transact(session, shares, () => runPlain(commands, shares));
  if (plain) return plain;
  const guarded = await transact(session, shares, () => runGuarded(session, commands, shares));
  if (!guarded) throw new Error("commands that are guarded end with an outcome each");
  return guarded;
}

/** SQLSTATE for a transaction id this server never began: after a failover it may not know it. */
const UNHEARD_OF = "22023";

/** Whether a transaction whose COMMIT got no answer was committed; null: it is still running. */
export async function wasCommitted(session: Session, transaction: string): Promise<boolean | null> {
  try {
    const { status } = await session.sql.prepare<object, { status: string | null }>(
      "SELECT pg_xact_status(CAST(@transaction AS xid8)) AS status").one({ transaction });
    return status === "in progress" ? null : status === "committed";
  } catch (error) {
    if (stateOf(error) === UNHEARD_OF) return false;
    throw error;
  }
}
