// Group commit: runs many commands in one transaction and answers each on its own. Used by the
// writer thread (workers/write.ts), by the CLI and by benchmarks, on their own connection.
import { StorageFailure } from "#core/faults.ts";
import { isDiskFailure, type Db } from "./database.ts";

/** One use case: reads and writes, returns plain data, touches nothing but the database. */
export type Command = (args: never) => unknown;
export type Commands = Record<string, Command>;

export interface Request {
  command: string;
  args: unknown;
}

/** `failure`: the disk is at fault and nothing of the batch happened; the writer must not go on. */
export type Outcome =
  | { kind: "done"; value: unknown }
  | { kind: "threw"; error: unknown }
  | { kind: "failure"; error: StorageFailure };

/**
 * Runs the requests in order inside one transaction. A command that throws takes no batch-mate
 * down: commands are functions of the database and their arguments alone, so the batch is rolled
 * back and run again with a savepoint around each. The common case pays for no savepoint.
 */
export function createBatchRunner(db: Db, commands: Commands): (requests: Request[]) => Outcome[] {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const rollback = db.prepare("ROLLBACK");
  const savepoint = db.prepare("SAVEPOINT command");
  const release = db.prepare("RELEASE command");
  const undo = db.prepare("ROLLBACK TO command");

  const run = (request: Request): unknown => {
    const command = commands[request.command];
    if (!command) throw new Error(`unknown command ${request.command}`);
    return command(request.args as never);
  };
  const runGuarded = (request: Request): Outcome => {
    savepoint.run();
    try {
      const value = run(request);
      release.run();
      return { kind: "done", value };
    } catch (error) {
      if (isDiskFailure(error) || !db.inTransaction) throw error;
      undo.run();
      release.run();
      return { kind: "threw", error };
    }
  };
  const inTransaction = (work: () => Outcome[]): Outcome[] => {
    begin.run();
    try {
      const outcomes = work();
      commit.run();
      return outcomes;
    } catch (error) {
      if (db.inTransaction) rollback.run();
      throw error;
    }
  };
  const asFailures = (requests: Request[], error: unknown): Outcome[] => {
    const failure = new StorageFailure("the database could not be written", error);
    return requests.map(() => ({ kind: "failure", error: failure }));
  };

  return (requests) => {
    try {
      return inTransaction(() => requests.map((r) => ({ kind: "done", value: run(r) })));
    } catch (error) {
      if (isDiskFailure(error)) return asFailures(requests, error);
    }
    try {
      return inTransaction(() => requests.map(runGuarded));
    } catch (error) {
      if (isDiskFailure(error)) return asFailures(requests, error);
      return requests.map(() => ({ kind: "threw", error }));
    }
  };
}
