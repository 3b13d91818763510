// Publishes replies that this node writes, for watchers at other nodes: the first words of each
// always, the rest while somebody keeps asking, and all of it again when the wire is back up. The
// other half is remote-reply.ts; made in app/cluster.ts.
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { LiveReplyView } from "#events/live.ts";
import { isSameReply, liveSubject, type LiveHave, type LivePart, type ReplyQuestions } from "./live-replies.ts";
import { encode } from "./message.ts";
import type { Wire } from "./wire.ts";

interface LiveSenderOptions {
  questions: ReplyQuestions;
  wire: Wire;
  bus: EventBus;
  system: System;
}

interface LiveSender {
  /** This node writes the reply until the result is called. */
  offer(
    conversationUuid: string, live: LiveReplyView,
    stop: (turnId: number | null) => Promise<boolean>,
  ): () => void;
  isOffered(conversationUuid: string): boolean;
  close(): void;
}

/** A reply, and how far it was published. */
interface Offered {
  live: LiveReplyView;
  /** Null: not even the first words were published. */
  sent: LiveHave | null;
  untilMs: number;
}

const TOPIC = "conversation:";

const partOf = (live: LiveReplyView, have: LiveHave | null): LivePart => {
  const { turnId, baseSequence, shown, failure } = live;
  const { chars: from, calls: callsFrom } = have && isSameReply(have, live)
    ? have : { chars: 0, calls: 0 };
  return {
    turnId, baseSequence, failure, from, callsFrom,
    text: live.slice(from, shown), calls: live.calls.slice(callsFrom),
  };
};

export function createLiveSender({ questions, wire, bus, system }: LiveSenderOptions): LiveSender {
  const offers = new Map<string, Offered>();
  const reached = (offered: Offered): void => {
    const { turnId, baseSequence, shown: chars, calls } = offered.live;
    offered.sent = { turnId, baseSequence, chars, calls: calls.length };
  };
  const publish = (uuid: string, offered: Offered): void => {
    wire.publish(liveSubject(uuid), encode({ part: partOf(offered.live, offered.sent) }));
    reached(offered);
  };
  const untap = bus.tap((topic, notice) => {
    if (notice.kind !== "live" || !topic.startsWith(TOPIC)) return;
    const uuid = topic.slice(TOPIC.length);
    const offered = offers.get(uuid);
    if (!offered || (offered.sent && offered.untilMs <= system.monotonicMs())) return;
    publish(uuid, offered);
  });
  // A watching node's request may have been lost while the wire was down, and is not repeated.
  const untold = wire.onState((state) => {
    if (state === "down") return;
    for (const [uuid, offered] of offers) {
      if (!offered.sent) continue;
      offered.sent = null;
      publish(uuid, offered);
    }
  });
  return {
    offer: (uuid, live, stop) => {
      const offered: Offered = { live, sent: null, untilMs: 0 };
      offers.set(uuid, offered);
      const end = questions.answer(uuid, {
        live: async ({ have }) => {
          reached(offered);
          offered.untilMs = system.monotonicMs() + LIMITS.liveSentMs;
          return partOf(live, have);
        },
        stop: ({ turnId }) => stop(turnId),
      });
      return () => {
        end();
        if (offers.get(uuid) === offered) offers.delete(uuid);
      };
    },
    isOffered: (uuid) => offers.has(uuid),
    close: () => {
      untap();
      untold();
    },
  };
}
