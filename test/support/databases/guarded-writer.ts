// A writer that checks what the lock of each command promises: triggers refuse every row of another
// account. Tests write through it in the place of the engine's own.
import { createBatchRunner } from "#storage/engines/sqlite/batch.ts";
import { openWriter, type Db } from "#storage/engines/sqlite/database.ts";
import { commandsOver } from "#storage/engines/sqlite/sql.ts";
import { lockOf } from "#storage/locks.ts";
import type { AllCommands } from "#storage/commands.ts";
import type { Writer } from "#storage/writer.ts";

/** The account of a row without an `account_id` of its own; `ROW` is NEW or OLD. */
const OWNERS: Record<string, string> = {
  accounts: "ROW.id",
  messages: "(SELECT account_id FROM conversations WHERE id = ROW.conversation_id)",
  turns: "(SELECT account_id FROM conversations WHERE id = ROW.conversation_id)",
  call_entries: "(SELECT account_id FROM calls WHERE id = ROW.call_id)",
  assistant_labels: "(SELECT account_id FROM assistants WHERE id = ROW.assistant_id)",
  assistant_spend: "(SELECT account_id FROM assistants WHERE id = ROW.assistant_id)",
  chunks: "(SELECT account_id FROM documents WHERE id = ROW.document_id)",
  sip_trunks: "(SELECT account_id FROM phone_numbers WHERE id = ROW.phone_number_id)",
};

/** Under a global lock nothing is refused: such a command is not limited to one account. */
function guardTables(db: Db, lockedAccount: () => number | null): void {
  db.function("locked_account", lockedAccount);
  const owned = db.prepare<[], { name: string }>(`
    SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND c.name = 'account_id'`).all();
  const owners = {
    ...Object.fromEntries(owned.map(({ name }) => [name, "ROW.account_id"])), ...OWNERS,
  };
  for (const [table, owner] of Object.entries(owners)) {
    for (const [event, rows] of [
      ["INSERT", ["NEW"]], ["UPDATE", ["OLD", "NEW"]], ["DELETE", ["OLD"]],
    ] as const) {
      const foreign = rows.map((row) => `${owner.replace("ROW", row)} <> locked_account()`);
      db.exec(`CREATE TEMP TRIGGER guard_${table}_${event} BEFORE ${event} ON main.${table}
        WHEN ${foreign.join(" OR ")} BEGIN
          SELECT RAISE (ABORT, '${event} of ${table} touches another account');
        END`);
    }
  }
}

export function createGuardedWriter(dataDir: string): Writer<AllCommands> {
  const db = openWriter(dataDir, { migrate: true });
  const run = createBatchRunner(db, () => commandsOver(db));
  let locked: number | null = null;
  guardTables(db, () => locked);
  let last: Promise<unknown> = Promise.resolve();
  return {
    write: (command, args) => {
      const written = last.then(async () => {
        const lock = lockOf(command, args);
        locked = "account" in lock ? lock.account : null;
        const [outcome] = await run([{ command, args }]);
        if (outcome?.kind !== "done") throw outcome?.error;
        return outcome.value as never;
      });
      last = written.catch(() => undefined);
      return written;
    },
    failure: () => null,
    isRefusing: () => false,
    close: async () => {
      await last;
      if (db.open) db.close();
    },
  };
}
