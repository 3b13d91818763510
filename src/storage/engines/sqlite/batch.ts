// Group commit: runs many commands in one transaction and answers each on its own. Used by the
// writer thread (workers/write.ts), by the CLI and by benchmarks, on their own connection.
import { StorageFailure } from "#core/faults.ts";
import { isBusy, isDiskFailure, isDiskFull, type Db } from "./database.ts";

/**
 * One use case: reads and writes, returns plain data, touches nothing but the database. It awaits
 * nothing but statements, so that a batch ends before the event loop continues.
 */
type Command = (args: never) => Promise<unknown>;
type Commands = Record<string, Command>;

export interface Request {
  command: string;
  args: unknown;
}

/**
 * `failure`: the disk failed and nothing in the batch happened; the writer must stop. `full`:
 * nothing in it happened for lack of room, or because another program has locked the database; the
 * writer continues.
 */
export type Outcome =
  | { kind: "done"; value: unknown }
  | { kind: "threw"; error: unknown }
  | { kind: "failure" | "full"; error: StorageFailure };

const isOfDisk = (error: unknown): boolean => isDiskFailure(error) || isDiskFull(error);

/**
 * Runs the requests in order inside one transaction. A command that throws takes no batch-mate
 * down: commands depend on nothing but the database and their arguments, so the batch is rolled
 * back and run again with a savepoint around each. The common case pays for no savepoint. Commands
 * may cache what they have read or written (the outbox does), so they are made anew after a batch
 * that the disk refused.
 */
export function createBatchRunner(
  db: Db, newCommands: () => Commands,
): (requests: Request[]) => Promise<Outcome[]> {
  let commands = newCommands();
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const rollback = db.prepare("ROLLBACK");
  const savepoint = db.prepare("SAVEPOINT command");
  const release = db.prepare("RELEASE command");
  const undo = db.prepare("ROLLBACK TO command");

  const run = (request: Request): Promise<unknown> => {
    const command = commands[request.command];
    if (!command) throw new Error(`unknown command ${request.command}`);
    return command(request.args as never);
  };
  const runGuarded = async (request: Request): Promise<Outcome> => {
    savepoint.run();
    try {
      const value = await run(request);
      release.run();
      return { kind: "done", value };
    } catch (error) {
      if (isOfDisk(error) || !db.inTransaction) throw error;
      undo.run();
      release.run();
      return { kind: "threw", error };
    }
  };
  const inTransaction = async (
    requests: Request[], how: "plain" | "guarded",
  ): Promise<Outcome[]> => {
    const late = setImmediate(() => {
      throw new Error("a command awaited something else than a statement");
    });
    try {
      begin.run();
      const outcomes: Outcome[] = [];
      for (const request of requests) {
        outcomes.push(how === "guarded"
          ? await runGuarded(request)
          : { kind: "done", value: await run(request) });
      }
      commit.run();
      return outcomes;
    } catch (error) {
      if (db.inTransaction) rollback.run();
      throw error;
    } finally {
      clearImmediate(late);
    }
  };
  const asFailures = (requests: Request[], error: unknown): Outcome[] => {
    commands = newCommands();
    return failuresOf(requests, error);
  };

  return async (requests) => {
    try {
      return await inTransaction(requests, "plain");
    } catch (error) {
      if (isOfDisk(error)) return asFailures(requests, error);
    }
    try {
      return await inTransaction(requests, "guarded");
    } catch (error) {
      if (isOfDisk(error) || isBusy(error)) return asFailures(requests, error);
      return requests.map(() => ({ kind: "threw", error }));
    }
  };
}

function failuresOf(requests: Request[], cause: unknown): Outcome[] {
  const error = new StorageFailure("could not write to the database", cause);
  const kind = isDiskFull(cause) || isBusy(cause) ? "full" : "failure";
  return requests.map(() => ({ kind, error }));
}
