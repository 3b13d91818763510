// Composition root, the wire to other nodes. Called by app.ts.
import type { Wire } from "#cluster/wire.ts";
import { noWire } from "#cluster/wires/none.ts";
import type { Config } from "#config/config.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";

/**
 * Null over SQLite, where there are no other nodes. Messages do not reach nodes of another
 * database, even under the same cluster name at the same NATS.
 */
export async function openWire(
  { config, system, log }: { config: Config; system: System; log: Logger },
  databaseId: string | null,
): Promise<Wire | null> {
  const { PARLEY_NATS_URL: url, PARLEY_CLUSTER: name } = config;
  if (databaseId === null) return null;
  if (url === null) return noWire;
  const cluster = `${name}.${databaseId}`;
  return (await import("#cluster/wires/nats.ts")).openNatsWire({ url, cluster, system, log });
}
