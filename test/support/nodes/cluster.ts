// Doubles of what connects nodes: a Cluster of one node, and a Wire with nobody else on it.
import type { Cluster, NodeView } from "#cluster/cluster.ts";
import { WireFault, type Wire } from "#cluster/wire.ts";

/** One node, alone, which holds what it owns for as long as `holds` says. */
export function loneCluster(nodeId = 1, holds = (): boolean => true): Cluster {
  const self: NodeView = { id: nodeId, url: null, draining: false };
  return {
    nodeId: self.id,
    alive: () => [self],
    holds,
    onLost: () => undefined,
  };
}

export const emptyWire = (): Wire => ({
  publish: () => undefined,
  subscribe: () => () => undefined,
  request: () => Promise.reject(new WireFault("nobody")),
  state: () => "up",
  onState: () => () => undefined,
  close: () => Promise.resolve(),
});
