// The server's secret at startup. A lost secret is not replaced silently: what was sealed with it
// would stay closed for ever. Used by features.ts.
import type { Config } from "#config/config.ts";
import { MisconfiguredStart } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { createSecretBox, findSecret, loadSecret } from "#core/secrets.ts";
import type { System } from "#core/system.ts";
import { databasePath } from "#storage/engines/sqlite/database.ts";
import { namesOf, trySealed } from "#storage/engines/sqlite/sealed.ts";

type Known = Pick<Config, "PARLEY_SECRET" | "PARLEY_DATA_DIR">;

/** For a database file in the data folder; a database server keeps a mark of its secret. */
export function takeSecret(
  { PARLEY_SECRET: configured, PARLEY_DATA_DIR: dataDir }: Known,
  { system, log }: { system: System; log: Logger },
): string {
  const secret = findSecret(configured, dataDir);
  const box = secret === null ? null : createSecretBox(secret, system);
  const trial = trySealed(databasePath(dataDir), box);
  if (trial.kind === "too_old") throw new Error("the database must be up to date before its secret is checked");
  const { count, closed, needsSecret } = trial;
  if (secret === null && needsSecret) {
    const what = closed.length === 0 ? "secrets of webhooks and sites" : namesOf(closed);
    throw new MisconfiguredStart(`the secret of the database in ${dataDir} is missing (needed for`
      + ` ${what}): restore the file "secret" from a backup, or set PARLEY_SECRET to its content. If`
      + " it is lost for good, set PARLEY_SECRET to a new value; encrypted values must then be entered"
      + " again, and webhooks and sites get new secrets");
  }
  if (closed.length > 0) {
    log.error({ closed: namesOf(closed), of: count },
      closed.length === count
        ? "the secret decrypts none of the encrypted values: set the right one"
        : "the secret cannot decrypt some encrypted values: enter the values named here again");
  }
  return secret ?? loadSecret(configured, dataDir, system);
}
