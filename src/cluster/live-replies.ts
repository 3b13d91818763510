// What nodes tell one another about a reply that is being written. Shared by both halves:
// live-sender.ts and remote-reply.ts.
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { LiveCall, LiveReplyView } from "#events/live.ts";
import { createQuestions, type Questions } from "./questions.ts";
import type { Wire } from "./wire.ts";

/** How much of a reply a node has: UTF-16 units of its text, and function calls. A turn that is
 * retried writes another reply, which begins at a later event. */
export interface LiveHave {
  turnId: number;
  baseSequence: number;
  chars: number;
  calls: number;
}

/** A piece of a reply. */
export interface LivePart {
  turnId: number;
  baseSequence: number;
  /** Where in the text `text` begins, and which call is the first of `calls`. */
  from: number;
  text: string;
  callsFrom: number;
  calls: LiveCall[];
  failure: LiveReplyView["failure"];
}

/** Questions to the node that writes a conversation's reply. */
type ReplyFamily = {
  /** Returns the reply from where the asking node has it; the rest is published for a while. */
  live: { body: { have: LiveHave | null }; answer: LivePart };
  /** False: the reply is over, or it is another turn's. */
  stop: { body: { turnId: number | null }; answer: boolean };
};
export type ReplyQuestions = Questions<ReplyFamily>;

export const replyQuestions = (wire: Wire, log: Logger) => createQuestions<ReplyFamily>({
  of: "reply", waitMs: { live: LIMITS.askMs, stop: LIMITS.askStopMs }, wire, log,
});

export const isSameReply = (
  one: Pick<LiveHave, "turnId" | "baseSequence"> | null | undefined,
  other: Pick<LiveHave, "turnId" | "baseSequence">,
): boolean => one?.turnId === other.turnId && one.baseSequence === other.baseSequence;

/** Where pieces of a conversation's replies are published. */
export const liveSubject = (conversationUuid: string): string => `live.${conversationUuid}`;
