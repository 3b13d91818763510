// Operations on conversations as records, one or many at once: deleting them with everything that
// was said, and adding or removing a label. Records → store port → factory.
import { publishNoted, type By } from "#features/accounts/audit.ts";
import type { Costs } from "#features/accounts/money/costs.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent } from "#events/events.ts";
import type { Attachments } from "./attachments.ts";
import { conversationNotFound } from "./outcomes.ts";

interface Gone {
  deleted: string[];
  /** Not deleted, because a reply is being written or a call is live in them. */
  busy: string[];
}

export interface Deleted extends Gone {
  events: CommittedEvent[];
}

export type Labelled =
  | { kind: "no_such_label" }
  /** The conversations that did not have the label before or, when removing it, had it. */
  | { kind: "labelled"; changed: string[] };

interface Many {
  accountId: number;
  uuids: string[];
  by: By;
  now: Instant;
}

/** Each method is one transaction; conversations that the account does not have are skipped. */
export interface BulkStore {
  /**
   * Deletes the texts of messages and events, notes, labels, callbacks and the search index; keeps
   * the ledger with the turns it names, the audit log and the records of calls.
   */
  delete(args: Many): Promise<Deleted>;
  label(args: Many & { labelId: number; isTaken: boolean }): Promise<Labelled>;
}

interface BulkOptions {
  store: BulkStore;
  attachments: Pick<Attachments, "sweep">;
  /** Caught up before a deletion: afterwards nobody knows which channel's cost that was. */
  costs: Pick<Costs, "catchUp">;
  bus: EventBus;
  system: System;
}

export type Bulk = ReturnType<typeof createBulk>;

export function createBulk({ store, attachments, costs, bus, system }: BulkOptions) {
  const remove = async (accountId: number, uuids: string[], by: By): Promise<Gone> => {
    const gone: Gone = { deleted: [], busy: [] };
    await costs.catchUp(accountId);
    // In small batches, so that no charge waits behind a hundred deletions.
    for (let at = 0; at < uuids.length; at += LIMITS.recordsGonePerWrite) {
      const some = uuids.slice(at, at + LIMITS.recordsGonePerWrite);
      const done = await store.delete({ accountId, uuids: some, by, now: system.now() });
      bus.publishCommitted(done.events);
      gone.deleted.push(...done.deleted);
      gone.busy.push(...done.busy);
    }
    if (gone.deleted.length === 0) return gone;
    publishNoted(bus, accountId);
    // Their files no longer belong to a conversation.
    await attachments.sweep();
    return gone;
  };
  return {
    removeMany: remove,
    /** Throws Fault 404, or 409 while a reply is written or a call held in it. */
    remove: async (accountId: number, uuid: string, by: By): Promise<void> => {
      const { deleted, busy } = await remove(accountId, [uuid], by);
      if (busy.length > 0) {
        throw new Fault(409, "A reply is being written or a call is in progress. Try again afterwards.");
      }
      if (deleted.length === 0) throw conversationNotFound();
    },
    /** Resolves to the changed conversations; throws Fault 422 where there is no such label. */
    label: async (
      accountId: number, uuids: string[], label: { labelId: number; isTaken: boolean }, by: By,
    ): Promise<string[]> => {
      const done = await store.label({ accountId, uuids, ...label, by, now: system.now() });
      if (done.kind === "no_such_label") {
        throw fieldFault("label_id", "The selected label id is invalid.");
      }
      if (done.changed.length > 0) publishNoted(bus, accountId);
      return done.changed;
    },
  };
}
