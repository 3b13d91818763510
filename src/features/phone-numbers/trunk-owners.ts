// Which node is registered for which trunk, where several serve the same ones: a trunk nobody is
// registered for goes to a node that has less than its share, and when that has not taken it after
// a while, to whichever looks. A node that has fewer than another asks for some of what that has.
// Used by sip-trunks.ts.
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { SipTrunkStore, StoredSipTrunk } from "./sip-trunks.ts";

/** This node among those that serve the same trunks. */
export interface TrunkNodes {
  nodeId: number;
  alive(): { id: number; draining: boolean }[];
  /** False: it takes no part in SIP. */
  hasSip: boolean;
  /** Tells the others to look. */
  announce(): void;
  /** Tells the others that this node has fewer than one of them. */
  ask(): void;
}

type OwnerStore = Pick<SipTrunkStore, "all" | "take" | "quiet" | "giveBack">;

/** How long a registrar knows us; of several nodes, one that died is to be forgotten sooner. */
const REGISTERED_S = 300;
const SHARED_REGISTERED_S = 120;
/** Some nodes may have no part in SIP: what was given waits for those that have. */
const GIVEN_MS = 60_000;

const ownedBy = (trunks: StoredSipTrunk[], nodeId: number | null): number[] =>
  trunks.filter(({ inboundAuth, ownerId }) => inboundAuth === "auth" && ownerId === nodeId)
    .map(({ id }) => id);

/** How many the node with the most of them has. */
const mostOf = (trunks: StoredSipTrunk[], { alive }: TrunkNodes): number =>
  Math.max(0, ...alive().map(({ id }) => ownedBy(trunks, id).length));

export function createTrunkOwners(
  store: OwnerStore, nodes: TrunkNodes | null, system: System,
) {
  /** Since when a trunk has been seen to be free. */
  let freeSinceMs = new Map<number, number>();
  let isLeaving = false;
  /** Those that are on their way to another node. */
  let giving = new Set<number>();
  /** Until when what was given is left to the others. */
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
    /** Seconds for which this node asks a registrar to know it; null: another node does. */
    registerS: ({ id, ownerId }: StoredSipTrunk): number | null => {
      if (!nodes) return REGISTERED_S;
      const isOurs = ownerId === nodes.nodeId && !isLeaving && !giving.has(id);
      return isOurs ? SHARED_REGISTERED_S : null;
    },
    /** All as they are, after this node has taken what is its share. */
    look: async (): Promise<StoredSipTrunk[]> => {
      const trunks = await store.all();
      if (!nodes?.hasSip || isLeaving) return trunks;
      const ids = wanted(trunks, nodes);
      const taken = ids.length > 0 ? await store.take(ids) : 0;
      // What another node took first is its own by now; what this one took, the others are told.
      const seen = ids.length > 0 ? await store.all() : trunks;
      if (taken > 0) nodes.announce();
      if (mostOf(seen, nodes) - ownedBy(seen, nodes.nodeId).length > 1) nodes.ask();
      return seen;
    },
    /**
     * Half of what this node has more than the one that asked, so that nothing goes back and forth.
     * A trunk with a call of ours on it stays. `tell` has this node registered as `registerS` says.
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
        // The registrar is left before another node is there: leaving might undo what that did.
        await tell(ids);
        await store.giveBack(ids);
        const untilMs = system.monotonicMs() + GIVEN_MS;
        for (const id of ids) givenUntilMs.set(id, untilMs);
      } finally {
        giving = new Set();
      }
      nodes.announce();
    },
    /** This node is registered nowhere from now on; others are once they have looked. */
    leave: async (unregister: () => Promise<void>): Promise<void> => {
      if (!nodes || isLeaving) return;
      isLeaving = true;
      await unregister();
      await store.giveBack(null);
      nodes.announce();
    },
  };
}
