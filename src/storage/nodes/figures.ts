// What each node has in progress and what waits for any of them, counted for people. Part of the
// node store (nodes.ts).
import type { Owned, Waiting } from "#cluster/cluster.ts";
import { IS_LIVE } from "#storage/calls/rows.ts";
import type { Reader } from "#storage/sql.ts";

/** Each part has few rows and an index of its own. */
const ownedSql = (): string => `
  SELECT node_id AS "nodeId", what, count(*) AS things FROM (
    SELECT node_id, 'replies' AS what FROM turns WHERE state = 'open'
    UNION ALL SELECT node_id, 'calls' FROM calls WHERE ${IS_LIVE}
    UNION ALL SELECT node_id, 'documents' FROM documents WHERE status = 'processing'
    UNION ALL SELECT node_id, 'webhook endpoints' FROM webhook_endpoints
    UNION ALL SELECT node_id, 'number orders' FROM number_purchases
    UNION ALL SELECT node_id, 'SIP trunks' FROM sip_trunks
  ) AS owned WHERE node_id IS NOT NULL GROUP BY node_id, what ORDER BY node_id, what`;
const WAITING = `
  SELECT (SELECT count(*) FROM documents WHERE status = 'processing') AS documents,
    (SELECT count(*) FROM webhook_deliveries WHERE state = 'pending') AS deliveries`;

export function nodeFigures(reader: Reader) {
  const owned = reader.prepare<object, Owned>(ownedSql());
  const waiting = reader.prepare<object, Waiting>(WAITING);
  return {
    owned: async (): Promise<Owned[]> => await owned.all({}),
    waiting: async (): Promise<Waiting> => await waiting.one({}),
  };
}
