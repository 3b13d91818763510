// What nodes say to one another of a reply that is being written. Shared by both halves:
// live-sender.ts and remote-reply.ts.
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { LiveCall, LiveReplyView } from "#events/live.ts";
import { createQuestions, type Questions } from "./questions.ts";
import type { Wire } from "./wire.ts";

/** How far somebody has a reply: units of its text, and function calls. A turn that is tried again
 * writes another reply, which begins at a later event. */
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

/** Asked of whoever writes a conversation's reply. */
type ReplyFamily = {
  /** The reply from where the asker has it; from now on it is sent for a while. */
  live: { body: { have: LiveHave | null }; answer: LivePart };
  /** False: it is over, or another turn is meant. */
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
