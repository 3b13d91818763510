// Trims what has a retention period: events and the journal of tool calls. Used by the engine's
// store.
import type { Instant } from "#core/system.ts";
import type { eventCommands } from "./events.ts";
import type { Reader } from "./sql.ts";
import { perAccount } from "./sweeps.ts";
import type { toolCommands } from "./tools.ts";
import type { Writer } from "./writer.ts";

export function createTrimLog(
  reader: Reader,
  writer: Writer<ReturnType<typeof eventCommands> & ReturnType<typeof toolCommands>>,
): (before: Instant, rows: number) => Promise<number> {
  // Only the oldest rows are examined: finding the others would mean reading the whole log.
  const events = reader.prepare<object, { id: number; accountId: number }>(`
    SELECT id, "accountId" FROM (
      SELECT id, account_id AS "accountId", created_at FROM events ORDER BY id LIMIT (@rows + 0)
    ) AS oldest WHERE created_at < @before`);
  const calls = reader.prepare<object, { id: number; accountId: number }>(`
    SELECT id, account_id AS "accountId" FROM tool_calls
    WHERE created_at < @before ORDER BY created_at LIMIT (@rows + 0)`);
  return async (before, rows) => {
    const trimmed = [
      ...await perAccount(await events.all({ before, rows }), (accountId, own) =>
        writer.write("events.trim", { accountId, ids: own.map(({ id }) => id) })),
      ...await perAccount(await calls.all({ before, rows }), (accountId, own) =>
        writer.write("tools.trimCalls", { accountId, ids: own.map(({ id }) => id) })),
    ];
    return trimmed.reduce((sum, count) => sum + count, 0);
  };
}
