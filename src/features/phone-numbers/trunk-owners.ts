// Which node is registered for which trunk, where several serve the same ones: a trunk nobody is
// registered for goes to a node that has less than its share, and when that has not taken it after
// a while, to whichever looks. Used by sip-trunks.ts.
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { SipTrunkStore, StoredSipTrunk } from "./sip-trunks.ts";

/** This node among those that serve the same trunks. */
export interface TrunkNodes {
  nodeId: number;
  alive(): { draining: boolean }[];
  /** False: it takes no part in SIP. */
  hasSip: boolean;
  /** Tells the others to look. */
  announce(): void;
}

type OwnerStore = Pick<SipTrunkStore, "all" | "take" | "giveBack">;

/** How long a registrar knows us; of several nodes, one that died is to be forgotten sooner. */
const REGISTERED_S = 300;
const SHARED_REGISTERED_S = 120;

export function createTrunkOwners(
  store: OwnerStore, nodes: TrunkNodes | null, system: System,
) {
  /** Since when a trunk has been seen to be free. */
  let freeSinceMs = new Map<number, number>();
  let isLeaving = false;
  const wanted = (trunks: StoredSipTrunk[], { nodeId, alive }: TrunkNodes): number[] => {
    const registered = trunks.filter(({ inboundAuth }) => inboundAuth === "auth");
    const free = registered.filter(({ ownerId }) => ownerId === null).map(({ id }) => id);
    const takers = Math.max(1, alive().filter(({ draining }) => !draining).length);
    const own = registered.filter(({ ownerId }) => ownerId === nodeId).length;
    const share = Math.max(0, Math.ceil(registered.length / takers) - own);
    const nowMs = system.monotonicMs();
    freeSinceMs = new Map(free.map((id) => [id, freeSinceMs.get(id) ?? nowMs]));
    return free.filter((id, index) =>
      index < share || nowMs - (freeSinceMs.get(id) ?? nowMs) >= LIMITS.trunkLookMs);
  };
  return {
    /** Seconds for which this node asks a registrar to know it; null: another node does. */
    registerS: ({ ownerId }: StoredSipTrunk): number | null => {
      if (!nodes) return REGISTERED_S;
      return ownerId === nodes.nodeId && !isLeaving ? SHARED_REGISTERED_S : null;
    },
    /** All as they are, after this node has taken what is its share. */
    look: async (): Promise<StoredSipTrunk[]> => {
      const trunks = await store.all();
      if (!nodes?.hasSip || isLeaving) return trunks;
      const ids = wanted(trunks, nodes);
      return ids.length > 0 && await store.take(ids) > 0 ? store.all() : trunks;
    },
    /** This node is registered nowhere from now on; others are once they have looked. */
    leave: async (unregister: () => Promise<void>): Promise<void> => {
      if (!nodes || isLeaving) return;
      isLeaving = true;
      await unregister();
      await store.giveBack();
      nodes.announce();
    },
  };
}
