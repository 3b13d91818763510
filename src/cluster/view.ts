// All nodes at a glance: which are live, draining or dead, what each has under way and what waits.
// Called by `parley doctor` and for the dashboard's page of the server.
import type { ClusterAtAGlance } from "./cluster.ts";
import type { NodeRecord, NodeStore } from "./nodes.ts";

export async function viewNodes(
  store: Pick<NodeStore, "clock" | "list" | "leases" | "owned" | "waiting">,
): Promise<ClusterAtAGlance> {
  const [now, nodes, leases, owned, waiting] = await Promise.all([
    store.clock(), store.list(), store.leases(), store.owned(), store.waiting(),
  ]);
  const isDead = ({ state, leaseUntil }: NodeRecord): boolean =>
    state === "gone" || (leaseUntil !== null && leaseUntil < now);
  return {
    now, waiting,
    nodes: nodes.map((node) => ({
      ...node,
      state: isDead(node) ? "dead" : node.state === "draining" ? "draining" : "live",
      owned: Object.fromEntries(owned.filter(({ nodeId }) => nodeId === node.id)
        .map(({ what, things }) => [what, things])),
      leases: leases.filter(({ nodeId }) => nodeId === node.id).map(({ name }) => name),
    })),
  };
}
