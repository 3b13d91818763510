// Rate limits of all nodes together: one node holds the window of a key, by rendezvous hashing over
// the living nodes, and the others ask it. When it does not answer at once, a node counts on its
// own: a limit protects the server's time, never money. Used by app/admission.ts.
import { hash } from "node:crypto";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { RateDecision, RateLimiter, SharedRateLimiter } from "#core/rate-limit.ts";
import type { Cluster } from "./cluster.ts";
import { createQuestions } from "./questions.ts";
import type { Wire } from "./wire.ts";

interface ShareOptions {
  cluster: Pick<Cluster, "nodeId" | "alive">;
  wire: Wire;
  log: Logger;
}

/** Asked of the node that holds a window. */
type LimitFamily = {
  take: { body: { limiter: string; key: string }; answer: RateDecision };
  giveBack: { body: { limiter: string; key: string }; answer: null };
};

/** The node that holds a window: all nodes compute the same; most windows stay when one goes. */
function holderOf(key: string, nodeIds: readonly number[]): number | null {
  let best: { id: number; rank: string } | null = null;
  for (const id of nodeIds) {
    const rank = hash("sha1", `${id} ${key}`);
    if (best === null || rank > best.rank) best = { id, rank };
  }
  return best?.id ?? null;
}

/** Each limiter has a unique name, which is the same on every node. */
export function shareLimits<Name extends string>(
  { cluster: { nodeId, alive }, wire, log }: ShareOptions, limiters: Record<Name, RateLimiter>,
): Record<Name, SharedRateLimiter> {
  const questions = createQuestions<LimitFamily>({
    of: "limit", waitMs: { take: LIMITS.askLimitMs, giveBack: LIMITS.askLimitMs }, wire, log,
  });
  const own = new Map<string, RateLimiter>(Object.entries<RateLimiter>(limiters));
  const ownOf = (name: string): RateLimiter => {
    const known = own.get(name);
    if (!known) throw new Error(`no limiter is called ${name}`);
    return known;
  };
  questions.answer(String(nodeId), {
    take: async ({ limiter, key }) => ownOf(limiter).take(key),
    giveBack: async ({ limiter, key }) => {
      ownOf(limiter).giveBack(key);
      return null;
    },
  });
  const holderOfWindow = (name: string, key: string): string | null => {
    const holder = holderOf(`${name} ${key}`, alive().map(({ id }) => id));
    return holder === null || holder === nodeId ? null : String(holder);
  };
  const shared = [...own].map(([name, limiter]): [string, SharedRateLimiter] => [name, {
    take: (key) => {
      const holder = holderOfWindow(name, key);
      if (holder === null) return limiter.take(key);
      // A node of another version may not have this limiter.
      return questions.ask(holder, "take", { limiter: name, key }).catch(() => limiter.take(key));
    },
    giveBack: async (key) => {
      const holder = holderOfWindow(name, key);
      if (holder === null) return limiter.giveBack(key);
      await questions.ask(holder, "giveBack", { limiter: name, key })
        .catch(() => limiter.giveBack(key));
    },
  }]);
  return Object.fromEntries(shared) as Record<Name, SharedRateLimiter>;
}
