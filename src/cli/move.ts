// The move command of the `parley` program: moves a stopped data folder into PostgreSQL.
import { join } from "node:path";
import { copyKept, filesIn, SCRATCH } from "#app/files.ts";
import { databaseUrl } from "#config/values.ts";
import type { Config } from "#config/config.ts";
import { createLogger } from "#core/logger.ts";
import { findSecret, secretMark } from "#core/secrets.ts";
import { createSystem } from "#core/system.ts";
import { noteMoved } from "#storage/engines/open.ts";
import { lockDataDir } from "#storage/engines/sqlite/database.ts";
import { table, text, UsageError, type Command, type Invocation } from "./command.ts";

/** The option is visible in process lists; the setting may come from a file. */
function targetOf(config: Config, values: Invocation["values"]): string {
  const given = text(values, "to");
  if (given === undefined) {
    if (config.PARLEY_DATABASE_URL !== null) return config.PARLEY_DATABASE_URL;
    throw new UsageError("--to is required, or PARLEY_DATABASE_URL");
  }
  const url = databaseUrl(given);
  if (typeof url === "string") return url;
  throw new UsageError("--to must be a URL such as postgres://user:password@host:5432/database");
}

type Kept = Awaited<ReturnType<typeof copyKept>>;

function filesLine(dataDir: string, { copied, left, place }: Kept): string {
  if (place !== null) return `${copied} files were copied to ${place}`;
  return left === 0
    ? "there were no recordings or documents to copy"
    : `${left} files stay in ${dataDir}: a single node keeps using them there, several need PARLEY_FILES_URL`;
}

/** What a person has to know before the first server starts on the database. */
function notes(config: Config, kept: Kept): string[] {
  const { PARLEY_DATA_DIR: dataDir, PARLEY_SECRET: configured } = config;
  const waiting = filesIn(join(dataDir, SCRATCH)).length;
  return [
    filesLine(dataDir, kept),
    ...waiting === 0 ? [] : [
      `${waiting} recordings wait in ${join(dataDir, SCRATCH)}: a node with this data folder`
        + " brings them to their place when it starts",
    ],
    ...configured !== null || findSecret(null, dataDir) === null ? [] : [
      `every node needs the secret: set PARLEY_SECRET to the content of ${join(dataDir, "secret")}`,
    ],
    `the file in ${dataDir} is unchanged, and no server will use it by mistake`,
  ];
}

export const moveCommand: Command = {
  name: "move",
  takes: "[--to postgres://…]",
  summary: "Move a stopped server's data into an empty PostgreSQL database",
  options: { to: { type: "string" } },
  run: async ({ config, values }) => {
    const url = targetOf(config, values);
    const dataDir = config.PARLEY_DATA_DIR;
    const lock = lockDataDir(dataDir);
    if (!lock) throw new Error("a server is running on the data folder: stop it first");
    try {
      const { moveDatabase } = await import("#storage/engines/move.ts");
      const system = createSystem();
      const secret = findSecret(config.PARLEY_SECRET, dataDir);
      let kept: Kept = { copied: 0, left: 0, place: null };
      const { tables, accounts, entries } = await moveDatabase({
        dataDir, url, system,
        tell: (step) => values.json === true || process.stderr.write(`parley: ${step}\n`),
        secretMark: secret === null ? null : secretMark(secret, "parley database"),
        note: () => noteMoved(dataDir, system),
        takeFiles: async (unwanted) => {
          kept = await copyKept({ config, system, log: createLogger("silent") }, unwanted);
        },
      });
      const rows = tables.reduce((sum, one) => sum + one.rows, 0);
      const said = [
        `moved ${rows} rows of ${tables.length} tables`,
        `the ledger is correct on both sides: ${accounts} accounts, ${entries} ledger entries`,
        ...notes(config, kept),
      ];
      const filled = tables.filter((one) => one.rows > 0);
      return {
        value: { rows, tables, accounts, entries, files: kept },
        text: [table(filled.map((one) => [one.table, one.rows])), ...said].join("\n"),
      };
    } finally {
      lock.release();
    }
  },
};
