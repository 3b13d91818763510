// The port through which committed events are read back, by sequence number.
import type { CommittedEvent } from "./events.ts";

/** Reads see everything committed before the call. */
export interface EventLog {
  /** Events of the conversation after `sequence`, oldest first, at most `rows`. */
  ofConversation(conversationUuid: string, after: number, rows: number): Promise<CommittedEvent[]>;
  /** Events of the account after `sequence`, oldest first, at most `rows`. */
  ofAccount(accountId: number, after: number, rows: number): Promise<CommittedEvent[]>;
  /** Events of the call after `sequence`, oldest first, at most `rows`. */
  ofCall(callId: number, after: number, rows: number): Promise<CommittedEvent[]>;
  /** Newest sequence of each topic; 0 when nothing has happened. */
  newestOfConversation(conversationUuid: string): Promise<number>;
  newestOfCall(callId: number): Promise<number>;
  newestOfAccount(accountId: number): Promise<number>;
  /** Newest sequence of each of the accounts that is there. */
  heads(accountIds: readonly number[]): Promise<Map<number, number>>;
}
