// How watchers see the reply being written right now. Implemented by
// conversations/turns/live-reply.ts.
import type { ReplyFailure } from "./events.ts";

export interface LiveReplyView {
  readonly turnId: number;
  /** Sequence of the conversation's newest event when the reply began. */
  readonly baseSequence: number;
  /** How many UTF-16 units of the text may be shown. Only grows. */
  readonly shown: number;
  /** The text from one offset to another, `to` ≤ `shown`. */
  slice(from: number, to: number): string;
  /** Function calls begun and ended so far, in order. */
  readonly calls: readonly LiveCall[];
  /** Set when the reply failed and not even that could be stored. */
  readonly failure: { reason: ReplyFailure; error: string } | null;
}

export interface LiveCall {
  type: "function_call_start" | "function_call_end";
  /** Where in the text it happened. */
  offset: number;
  /** The event's members. */
  members: Record<string, unknown>;
}
