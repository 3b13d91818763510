// The inbox: what people at the desk work through, in queues, with notes and canned replies.
// Records → store port → factory. What they do with a conversation is in handover.ts.
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { wait, type Instant, type System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { Author, CommittedEvent } from "#events/events.ts";
import type { Callback } from "./callbacks.ts";
import type { ConversationSummary, LastMessage } from "#features/conversations/records.ts";
import { conversationNotFound } from "#features/conversations/outcomes.ts";

export const QUEUES = ["waiting", "mine", "all"] as const;
export type Queue = (typeof QUEUES)[number];

export interface InboxRow extends ConversationSummary {
  /** The last message; null: there is none. */
  last: LastMessage | null;
  /** Since when it is in its queue. */
  since: Instant;
  /** Somebody else has written since the requesting person read it. */
  isUnread: boolean;
  /** Up to when the visitor has read; null: not known. */
  visitorReadAt: Instant | null;
  labels: InboxLabel[];
  /** The open callback; null: there is none. */
  callback: Callback | null;
}

export interface InboxLabel {
  id: number;
  name: string;
  color: string | null;
}

/** Absent members do not filter. */
export interface InboxFilter {
  labelId?: number | undefined;
  assistantId?: number | undefined;
  /** Only those with an open callback. */
  hasCallback?: boolean | undefined;
  isUnread?: boolean | undefined;
}

export interface InboxQuery {
  accountId: number;
  queue: Queue;
  /** The requesting person, for the queue `mine`. */
  holderId: string;
  /** Text to find in messages and identifiers; null: no filter. */
  search: string | null;
  filter: InboxFilter;
  /** The last row of the previous page; null: start with the oldest. */
  after: { since: Instant; id: number } | null;
  rows: number;
}

export interface Note {
  id: number;
  /** Null: the assistant. */
  author: Author | null;
  text: string;
  createdAt: Instant;
}

export interface CannedReply {
  id: number;
  shortcut: string;
  text: string;
  createdAt: Instant;
  updatedAt: Instant;
}

export type CannedOutcome =
  | { kind: "saved"; reply: CannedReply }
  | { kind: "name_taken" }
  | { kind: "too_many" }
  | { kind: "not_found" };

/** Each method is one transaction; writes resolve once they are durable. */
export interface InboxStore {
  /** Oldest first. */
  page(query: InboxQuery): Promise<InboxRow[]>;
  counts(accountId: number, holderId: string): Promise<Record<Queue, number>>;
  /** Adds the next messages to the search index, oldest first; resolves to how many. */
  indexMessages(rows: number): Promise<number>;
  /** Clears the search index: messages must be indexed again to be found. */
  forgetIndex(): Promise<void>;
  /** Replaces all labels. */
  label(args: {
    accountId: number; uuid: string; labelIds: number[];
  }): Promise<"labelled" | "not_found" | "no_such_label">;
  /** Ordered by name. */
  labels(conversationId: number): Promise<InboxLabel[]>;
  /** Oldest first. */
  notes(conversationId: number): Promise<Note[]>;
  /** Null: the account has no such conversation. */
  addNote(args: {
    accountId: number; uuid: string; author: Author; text: string; now: Instant;
  }): Promise<{ note: Note; events: CommittedEvent[] } | null>;
  /** Ordered by shortcut. */
  cannedReplies(accountId: number): Promise<CannedReply[]>;
  /** Creates a new one when there is no id. */
  saveCannedReply(args: {
    accountId: number; id: number | null; shortcut: string; text: string; max: number;
    now: Instant;
  }): Promise<CannedOutcome>;
  /** False: there is none. */
  removeCannedReply(args: { accountId: number; id: number }): Promise<boolean>;
}

interface InboxOptions {
  store: InboxStore;
  bus: EventBus;
  system: System;
}

const CANNED_REPLIES_MAX = 500;

export type Inbox = ReturnType<typeof createInbox>;

/** Indexes all unindexed messages in batches, pausing in between for other work. */
export async function indexMessages(
  store: Pick<InboxStore, "indexMessages">, system: System, isOver = (): boolean => false,
): Promise<number> {
  let all = 0;
  for (;;) {
    const indexed = await store.indexMessages(LIMITS.messageIndexRows);
    all += indexed;
    if (indexed < LIMITS.messageIndexRows || isOver()) return all;
    await wait(system, LIMITS.messageIndexPauseMs);
  }
}

export function createInbox({ store, bus, system }: InboxOptions) {
  const missing = (): Fault => new Fault(404, "Canned reply not found");
  return {
    page: store.page,
    counts: store.counts,
    label: async (accountId: number, uuid: string, labelIds: number[]): Promise<void> => {
      const outcome = await store.label({ accountId, uuid, labelIds });
      if (outcome === "not_found") throw conversationNotFound();
      if (outcome === "no_such_label") {
        throw fieldFault("label_ids", "The selected label ids are invalid.");
      }
    },
    labels: store.labels,
    notes: store.notes,
    addNote: async (
      accountId: number, uuid: string, author: Author, text: string,
    ): Promise<Note> => {
      const added = await store.addNote({ accountId, uuid, author, text, now: system.now() });
      if (!added) throw conversationNotFound();
      bus.publishCommitted(added.events);
      return added.note;
    },
    cannedReplies: store.cannedReplies,
    saveCannedReply: async (
      accountId: number, id: number | null, { shortcut, text }: { shortcut: string; text: string },
    ): Promise<CannedReply> => {
      const outcome = await store.saveCannedReply(
        { accountId, id, shortcut, text, max: CANNED_REPLIES_MAX, now: system.now() });
      switch (outcome.kind) {
        case "saved":
          return outcome.reply;
        case "name_taken": {
          const message = "The shortcut has already been taken.";
          throw new Fault(422, message, { errors: { shortcut: [message] } });
        }
        case "too_many":
          throw new Fault(
            422, `An account may not have more than ${CANNED_REPLIES_MAX} canned replies.`);
        case "not_found":
          throw missing();
      }
    },
    removeCannedReply: async (accountId: number, id: number): Promise<void> => {
      if (!await store.removeCannedReply({ accountId, id })) throw missing();
    },
  };
}
