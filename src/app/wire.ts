// Composition root, the wire to other nodes: none for a node by itself. Called by app.ts.
import type { Wire } from "#cluster/wire.ts";
import type { Config } from "#config/config.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";

export async function openWire(
  { config, system, log }: { config: Config; system: System; log: Logger },
): Promise<Wire | null> {
  const { PARLEY_NATS_URL: url, PARLEY_CLUSTER: cluster } = config;
  if (url === null) return null;
  return (await import("#cluster/wires/nats.ts")).openNatsWire({ url, cluster, system, log });
}
