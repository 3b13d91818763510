// Saved views of lists: a name for filters and columns, stored as in the page's address. Records →
// store port → factory.
import { Fault, fieldFault } from "#core/faults.ts";
import type { Instant, System } from "#core/system.ts";

export const VIEWED_LISTS = ["conversations", "calls"] as const;
export type ViewedList = (typeof VIEWED_LISTS)[number];

export interface SavedView {
  id: number;
  list: ViewedList;
  name: string;
  /** The query string of the page's address, without the `?`. */
  query: string;
  createdAt: Instant;
}

export type SaveViewOutcome =
  | { kind: "saved"; view: SavedView } | { kind: "too_many" };

export interface SavedViewStore {
  /** Ordered by name. */
  list(accountId: number): Promise<SavedView[]>;
  /** Replaces a view of the same list and name. */
  save(
    args: Omit<SavedView, "id" | "createdAt"> & { accountId: number; max: number; now: Instant },
  ): Promise<SaveViewOutcome>;
  /** False: there is none. */
  remove(args: { accountId: number; id: number }): Promise<boolean>;
}

const VIEWS_MAX = 100;

export type SavedViews = ReturnType<typeof createSavedViews>;

export function createSavedViews({ store, system }: { store: SavedViewStore; system: System }) {
  return {
    list: store.list,
    save: async (
      accountId: number, view: Pick<SavedView, "list" | "name" | "query">,
    ): Promise<SavedView> => {
      const saved = await store.save({
        ...view, name: view.name.trim(), accountId, max: VIEWS_MAX, now: system.now(),
      });
      if (saved.kind === "saved") return saved.view;
      throw fieldFault("name", `An account may not have more than ${VIEWS_MAX} saved views.`);
    },
    remove: async (accountId: number, id: number): Promise<void> => {
      if (!await store.remove({ accountId, id })) throw new Fault(404, "Saved view not found");
    },
  };
}
