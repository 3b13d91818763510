// Composition root, replies and calls of all nodes together. A node by itself has none of it.
// Called by features.ts and calls.ts.
import { replyQuestions } from "#cluster/live-replies.ts";
import { createLiveSender } from "#cluster/live-sender.ts";
import { createRemoteReplies } from "#cluster/remote-reply.ts";
import { WireFault, type Wire } from "#cluster/wire.ts";
import { Fault } from "#core/faults.ts";
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

/** Null where nobody writes; throws 503 where whoever does is out of reach. */
async function reaching<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof WireFault)) throw error;
    if (error.reason === "nobody") return null;
    throw new Fault(503, "The server that writes the reply is out of reach.", { retryAfterS: 1 });
  }
}

export function joinReplies(options: JoinOptions): OtherReplies & { close(): void } {
  const questions = replyQuestions(options.wire, options.log);
  const sender = createLiveSender({ ...options, questions });
  const remote = createRemoteReplies({ ...options, questions, isOwn: sender.isOffered });
  return {
    live: remote.live,
    offer: sender.offer,
    find: (uuid) => reaching(questions.ask(uuid, "live", { have: null })),
    stop: async (uuid, turnId) =>
      await reaching(questions.ask(uuid, "stop", { turnId })) ?? false,
    close: () => {
      sender.close();
      remote.close();
    },
  };
}
