// What an operator wants to know about a running PostgreSQL: its standbys and their lag, its clock,
// the secret it was set up with. Used by `parley doctor`.
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import { factsOf } from "./facts.ts";
import { clockOffMs, openServer } from "./server.ts";

interface Standby {
  name: string;
  /** `streaming` is the healthy state. */
  state: string;
  /** With `sync` or `quorum`, commits wait for it; with `async`, they do not. */
  sync: string;
  lagBytes: number;
}

interface ServerFindings {
  version: string;
  clockOffMs: number;
  /** Null: no node has started on it yet. */
  secretMark: string | null;
  standbys: Standby[];
  /** Why nothing can be changed; null: it can. */
  refusal: string | null;
}

/** A user without the right to see standbys sees their names only. */
const STANDBYS = `
  SELECT coalesce(application_name, '') AS name, coalesce(state, 'unknown') AS state,
    coalesce(sync_state, 'unknown') AS sync,
    coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0) AS "lagBytes"
  FROM pg_stat_replication ORDER BY application_name`;

/** Commits wait for as many standbys as the settings want, even if fewer are there. */
const REFUSAL = `
  SELECT CASE
    WHEN current_setting('transaction_read_only') = 'on' THEN 'default_transaction_read_only is on'
    WHEN names <> '' AND current_setting('synchronous_commit') <> 'local' AND there < needed
    THEN format('each commit waits for standbys of synchronous_standby_names: %s needed, %s there',
      needed, there)
  END AS refusal
  FROM (SELECT current_setting('synchronous_standby_names') AS names) AS setting,
    LATERAL (SELECT coalesce(
      substring(names FROM '(?i)^ *(?:(?:any|first) *)?([0-9]+) *[(]')::int, 1) AS needed) AS wanted,
    (SELECT count(*) AS there FROM pg_stat_replication
      WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum')) AS standbys`;

export async function inspectServer(url: string, system: System): Promise<ServerFindings> {
  const named = "PARLEY_DATABASE_URL";
  const session = await openServer({ url, system, named }, LIMITS.databaseAnswerMs);
  try {
    const { version } = await session.sql.prepare<object, { version: string }>(
      "SELECT current_setting('server_version') AS version").one({});
    return {
      version,
      clockOffMs: await clockOffMs(session, system),
      secretMark: (await factsOf(session.sql).read()).secret ?? null,
      standbys: await session.sql.prepare<object, Standby>(STANDBYS).all({}),
      ...await session.sql.prepare<object, { refusal: string | null }>(REFUSAL).one({}),
    };
  } finally {
    await session.close();
  }
}
