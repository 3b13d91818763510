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
  if (trial.kind === "too_old") throw new Error("the database is opened before its secret");
  const { count, closed, needsSecret } = trial;
  if (secret === null && needsSecret) {
    const what = closed.length === 0 ? "secrets of webhooks and sites" : namesOf(closed);
    throw new MisconfiguredStart(`the secret is missing that the database of ${dataDir} was used`
      + ` with (${what}): put the file secret back there, which a backup has, or set PARLEY_SECRET`
      + " to it. Where it is lost for good, set PARLEY_SECRET to a new one: what was sealed is"
      + " then entered anew, and webhooks and sites get other secrets");
  }
  if (closed.length > 0) {
    log.error({ closed: namesOf(closed), of: count },
      closed.length === count
        ? "the secret opens nothing of what was sealed: another one is needed"
        : "the secret does not open all that was sealed: enter anew what is named here");
  }
  return secret ?? loadSecret(configured, dataDir, system);
}
