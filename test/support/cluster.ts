// Doubles of what joins nodes: a Cluster of one node, and a Wire on which nobody is there.
import type { AnswerOf, BodyOf, Cluster, NodeView, Question } from "#cluster/cluster.ts";
import { WireFault, type Wire } from "#cluster/wire.ts";

/** One node, alone, which holds what it owns for as long as `holds` says. */
export function loneCluster(nodeId = 1, holds = (): boolean => true): Cluster {
  const self: NodeView = { id: nodeId, url: null, draining: false };
  const answers = new Map<Question["kind"], (body: never) => Promise<unknown>>();
  return {
    nodeId: self.id,
    alive: () => [self],
    ask: async <K extends Question["kind"]>(nodeId: number, kind: K, body: BodyOf<K>) => {
      const give = nodeId === self.id ? answers.get(kind) : undefined;
      if (!give) throw new WireFault("nobody");
      return await give(body as never) as AnswerOf<K>;
    },
    answer: (kind, give) => void answers.set(kind, give),
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
