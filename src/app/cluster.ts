// Composition root, replies and calls across all nodes. A single node has none of this. Called by
// features.ts.
import type { ClusterAtAGlance } from "#cluster/cluster.ts";
import { replyQuestions } from "#cluster/live-replies.ts";
import { createLiveSender } from "#cluster/live-sender.ts";
import { reaching } from "#cluster/questions.ts";
import { createRemoteReplies } from "#cluster/remote-reply.ts";
import { viewNodes } from "#cluster/view.ts";
import type { NodeWork } from "#cluster/nodes.ts";
import type { Wire } from "#cluster/wire.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { OtherReplies } from "#features/conversations/conversations.ts";
import type { Storage } from "#storage/storage.ts";

interface JoinOptions {
  wire: Wire;
  bus: EventBus;
  system: System;
  log: Logger;
}

const WRITES = "writes the reply";

export function joinReplies(options: JoinOptions): OtherReplies & { close(): void } {
  const questions = replyQuestions(options.wire, options.log);
  const sender = createLiveSender({ ...options, questions });
  const remote = createRemoteReplies({ ...options, questions, isOwn: sender.isOffered });
  return {
    live: remote.live,
    offer: sender.offer,
    find: (uuid) => reaching(WRITES, questions.ask(uuid, "live", { have: null })),
    stop: (uuid, turnId) => reaching(WRITES, questions.ask(uuid, "stop", { turnId })),
    close: () => {
      sender.close();
      remote.close();
    },
  };
}

/**
 * The cluster as people see it; a single node sends no heartbeats, so its figures are filled in
 * here.
 */
export async function viewCluster(
  { nodes, nodeId }: Pick<Storage, "nodes" | "nodeId">,
  own: Pick<NodeWork, "calls" | "streams"> | null,
): Promise<ClusterAtAGlance> {
  const view = await viewNodes(nodes);
  if (!own) return view;
  const self = { calls: own.calls(), streams: own.streams(), beatAt: view.now };
  return {
    ...view,
    nodes: view.nodes.map((node) => (node.id === nodeId() ? { ...node, ...self } : node)),
  };
}
