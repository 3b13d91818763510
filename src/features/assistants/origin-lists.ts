// The origins that any assistant allows, for preflights: strangers may ask as often as they like,
// so the assistants are not read anew for each of them.
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { AssistantStore, OriginLists } from "./assistants.ts";

/** Forgets with each change through this store; changes by other processes show a little later. */
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
    // Kept while they are being read, too: a change meanwhile forgets them all the same.
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
