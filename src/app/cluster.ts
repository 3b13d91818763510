// Composition root, replies and calls of all nodes together. A node by itself has none of it.
// Called by features.ts.
import { replyQuestions } from "#cluster/live-replies.ts";
import { createLiveSender } from "#cluster/live-sender.ts";
import { reaching } from "#cluster/questions.ts";
import { createRemoteReplies } from "#cluster/remote-reply.ts";
import type { Wire } from "#cluster/wire.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { OtherReplies } from "#features/conversations/conversations.ts";

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
    stop: async (uuid, turnId) =>
      await reaching(WRITES, questions.ask(uuid, "stop", { turnId })) ?? false,
    close: () => {
      sender.close();
      remote.close();
    },
  };
}
