// Counts a topic's watchers at other nodes, for the bound on streams. A node asks only once it has
// its share: as long as no node has more, all together are within the bound. Two streams opened at
// the same moment at two nodes may both pass. Used by app/features.ts.
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { Topic } from "#events/events.ts";
import type { Cluster } from "./cluster.ts";
import { createQuestions } from "./questions.ts";
import { WireFault, type Wire } from "./wire.ts";

interface WatchersOptions {
  cluster: Pick<Cluster, "nodeId" | "alive">;
  wire: Wire;
  log: Logger;
  /** Watchers at this node. */
  count(topic: Topic): number;
}

/** Asked of each other node. */
type WatcherFamily = { count: { body: { topic: Topic }; answer: number } };

/** At other nodes; 0 while this node has less than its share of `most`. Silent nodes count 0. */
type CountElsewhere = (topic: Topic, most: number) => Promise<number>;

export function countWatchers(
  { cluster: { nodeId, alive }, wire, log, count }: WatchersOptions,
): CountElsewhere {
  const questions = createQuestions<WatcherFamily>({
    of: "watchers", waitMs: { count: LIMITS.askLimitMs }, wire, log,
  });
  questions.answer(String(nodeId), { count: async ({ topic }) => count(topic) });
  const ask = async (id: number, topic: Topic): Promise<number> => {
    try {
      return await questions.ask(String(id), "count", { topic });
    } catch (error) {
      if (error instanceof WireFault) return 0;
      throw error;
    }
  };
  return async (topic, most) => {
    const nodes = alive();
    if (count(topic) < most / nodes.length) return 0;
    const others = nodes.filter(({ id }) => id !== nodeId);
    const counts = await Promise.all(others.map(({ id }) => ask(id, topic)));
    return counts.reduce((sum, one) => sum + one, 0);
  };
}
