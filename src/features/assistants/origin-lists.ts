// A cache of the origins that any assistant allows, for preflights: strangers may send any number
// of those, so the assistants are not read again for each.
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { AssistantStore, OriginLists } from "./assistants.ts";

/** Invalidated by each write through this store; other processes' writes show after it expires. */
export function withKeptOrigins(store: AssistantStore, system: System): AssistantStore {
  let kept: { lists: Promise<OriginLists>; untilMs: number } | null = null;
  const forgetting = <Args, Result>(write: (args: Args) => Promise<Result>) =>
    async (args: Args): Promise<Result> => {
      try {
        return await write(args);
      } finally {
        kept = null;
      }
    };
  return {
    ...store,
    create: forgetting(store.create),
    update: forgetting(store.update),
    remove: forgetting(store.remove),
    // Cached while still being read; a write in the meantime invalidates it all the same.
    ownOriginLists: () => {
      const nowMs = system.monotonicMs();
      if (kept === null || nowMs >= kept.untilMs) {
        const fresh = { lists: store.ownOriginLists(), untilMs: nowMs + LIMITS.originListsKeptMs };
        kept = fresh;
        fresh.lists.catch(() => {
          if (kept === fresh) kept = null;
        });
      }
      return kept.lists;
    },
  };
}
