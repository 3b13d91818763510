// Which node owns (is registered for) which trunk, where several nodes serve the same ones. A free
// trunk goes to a node that has less than its share or, if none has taken it after a while, to
// whichever polls next. A node that has fewer than another asks it for some. Used by
// sip-trunks.ts.
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { SipTrunkStore, StoredSipTrunk } from "./sip-trunks.ts";

/** This node, and the others that serve the same trunks. */
export interface TrunkNodes {
  nodeId: number;
  alive(): { id: number; draining: boolean }[];
  /** False: this node does not do SIP. */
  hasSip: boolean;
  /** Tells the other nodes to poll. */
  announce(): void;
  /** Tells the other nodes that this one owns fewer than one of them, and asks for some. */
  ask(): void;
}

type OwnerStore = Pick<SipTrunkStore, "all" | "take" | "quiet" | "giveBack">;

/** Expiry of registrations; shorter with several nodes, so that a dead one expires sooner. */
const REGISTERED_S = 300;
const SHARED_REGISTERED_S = 120;
/** How long this node leaves trunks that it gave away to the others before it may retake them. */
const GIVEN_MS = 60_000;

const ownedBy = (trunks: StoredSipTrunk[], nodeId: number | null): number[] =>
  trunks.filter(({ inboundAuth, ownerId }) => inboundAuth === "auth" && ownerId === nodeId)
    .map(({ id }) => id);

/** The largest number of trunks that one node owns. */
const mostOf = (trunks: StoredSipTrunk[], { alive }: TrunkNodes): number =>
  Math.max(0, ...alive().map(({ id }) => ownedBy(trunks, id).length));

export function createTrunkOwners(
  store: OwnerStore, nodes: TrunkNodes | null, system: System,
) {
  /** Since when this node has seen each trunk free. */
  let freeSinceMs = new Map<number, number>();
  let isLeaving = false;
  /** Trunks being given to another node. */
  let giving = new Set<number>();
  /** Until when this node must not retake trunks that it gave away. */
  const givenUntilMs = new Map<number, number>();
  const wanted = (trunks: StoredSipTrunk[], { nodeId, alive }: TrunkNodes): number[] => {
    const registered = trunks.filter(({ inboundAuth }) => inboundAuth === "auth");
    const nowMs = system.monotonicMs();
    for (const [id, untilMs] of givenUntilMs) if (untilMs <= nowMs) givenUntilMs.delete(id);
    const free = registered.filter(({ id, ownerId }) => ownerId === null && !givenUntilMs.has(id))
      .map(({ id }) => id);
    const takers = Math.max(1, alive().filter(({ draining }) => !draining).length);
    const own = ownedBy(registered, nodeId).length;
    const share = Math.max(0, Math.ceil(registered.length / takers) - own);
    freeSinceMs = new Map(free.map((id) => [id, freeSinceMs.get(id) ?? nowMs]));
    return free.filter((id, index) =>
      index < share || nowMs - (freeSinceMs.get(id) ?? nowMs) >= LIMITS.trunkLookMs);
  };
  return {
    /** The expiry in seconds that this node registers with; null: another node registers. */
    registerS: ({ id, ownerId }: StoredSipTrunk): number | null => {
      if (!nodes) return REGISTERED_S;
      const isOurs = ownerId === nodes.nodeId && !isLeaving && !giving.has(id);
      return isOurs ? SHARED_REGISTERED_S : null;
    },
    /** All trunks, after this node has taken its share. */
    look: async (): Promise<StoredSipTrunk[]> => {
      const trunks = await store.all();
      if (!nodes?.hasSip || isLeaving) return trunks;
      const ids = wanted(trunks, nodes);
      const taken = ids.length > 0 ? await store.take(ids) : 0;
      // Read again, as another node may have taken some first; the others learn what this one took.
      const seen = ids.length > 0 ? await store.all() : trunks;
      if (taken > 0) nodes.announce();
      if (mostOf(seen, nodes) - ownedBy(seen, nodes.nodeId).length > 1) nodes.ask();
      return seen;
    },
    /**
     * Gives away half of this node's surplus over the asking node, so that nothing goes back and
     * forth, but no trunk with a call of ours. `tell` updates registrations by `registerS`.
     */
    give: async (askerId: number, tell: (ids: number[]) => Promise<void>): Promise<void> => {
      if (!nodes || isLeaving || giving.size > 0 || askerId === nodes.nodeId) return;
      if (!nodes.alive().some(({ id, draining }) => id === askerId && !draining)) return;
      const trunks = await store.all();
      const own = ownedBy(trunks, nodes.nodeId);
      const count = Math.floor((own.length - ownedBy(trunks, askerId).length) / 2);
      const ids = count > 0 ? (await store.quiet(own)).slice(-count) : [];
      if (ids.length === 0 || giving.size > 0) return;
      giving = new Set(ids);
      try {
        // Unregisters before another node registers, because doing so later could undo its
        // registration.
        await tell(ids);
        await store.giveBack(ids);
        const untilMs = system.monotonicMs() + GIVEN_MS;
        for (const id of ids) givenUntilMs.set(id, untilMs);
      } finally {
        giving = new Set();
      }
      nodes.announce();
    },
    /** Ends all registrations of this node; others register once they have polled. */
    leave: async (unregister: () => Promise<void>): Promise<void> => {
      if (!nodes || isLeaving) return;
      isLeaving = true;
      await unregister();
      await store.giveBack(null);
      nodes.announce();
    },
  };
}
