// The command `parley ledger verify`.
import type { Config } from "#config/config.ts";
import { auditLedger } from "#storage/accounts/ledger-audit.ts";
import { auditDatabase } from "#storage/engines/sqlite/backup.ts";
import { databaseExists, databasePath, openForInspection } from "#storage/engines/sqlite/database.ts";
import { withStorage, type Command } from "./command.ts";

/** Audits the storage that the settings name. */
async function auditStored(config: Config): ReturnType<typeof auditLedger> {
  if (config.PARLEY_DATABASE_URL !== null) {
    return withStorage(config, ({ ledger }) => auditLedger(ledger));
  }
  if (!databaseExists(config.PARLEY_DATA_DIR)) throw new Error("there is no database yet");
  const db = openForInspection(databasePath(config.PARLEY_DATA_DIR));
  try {
    return await auditDatabase(db);
  } finally {
    db.close();
  }
}

export const verifyLedgerCommand: Command = {
  name: "ledger verify",
  takes: "",
  summary: "Recompute every balance and hash from the ledger",
  options: {},
  run: async ({ config }) => {
    const { accounts, entries, problems } = await auditStored(config);
    const ok = problems.length === 0;
    const summary = `${accounts} accounts, ${entries} ledger entries`;
    return {
      value: { ok, accounts, entries, problems },
      text: ok ? `the ledger is correct: ${summary}` : `${summary}\n${problems.join("\n")}`,
      failed: !ok,
    };
  },
};
