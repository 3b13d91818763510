// Deletes everything stored about one person: conversations, calls with their recordings, leads. A
// conversation or a telephone number identifies the person. The ledger, the audit log and the
// do-not-call list stay. Records → store port → factory.
import { publishNoted, type By } from "#features/accounts/audit.ts";
import type { Costs } from "#features/accounts/money/costs.ts";
import type { Attachments } from "#features/conversations/attachments.ts";
import { conversationNotFound } from "#features/conversations/outcomes.ts";
import { LIMITS } from "#core/limits.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent } from "#events/events.ts";
import type { Recordings } from "./recordings.ts";

/**
 * With a conversation: the person who had it, with their other conversations with the same
 * assistant under the same id, and with the number if that id is one. With a number: whoever has
 * it, in the whole account.
 */
export type Person = { conversationId: string } | { phoneNumber: string };

interface PersonRecords {
  /** Without the one that was named. */
  conversations: string[];
  /** The conversation that identifies the person; null: a number does. */
  named: string | null;
  calls: number[];
  /** Without secondary contacts, which go with their leads. */
  leads: number[];
}

export interface PersonStore {
  /** Null: there is no such conversation. */
  find(accountId: number, person: Person): Promise<PersonRecords | null>;
  /**
   * Deletes answers that are kept for repeated requests, up to that many, and resolves to how many:
   * they may contain the person's number or words, and none can be told from the others.
   */
  forgetAnswers(accountId: number, rows: number): Promise<number>;
  /**
   * One transaction, also of the answers kept meanwhile, recorded in the audit log with the number
   * of each. The named conversation stays, and counts as busy, if any other record is or
   * `busyBefore` were: a repeated request finds those by it.
   */
  delete(args: PersonRecords & {
    accountId: number; by: By; now: Instant; busyBefore: number;
  }): Promise<{
    deleted: PersonCounts;
    /** Files of calls that no record refers to any more. */
    recordings: string[];
    events: CommittedEvent[];
  }>;
}

export interface PersonCounts {
  conversations: number;
  calls: number;
  leads: number;
  /** Records that stay, since a call or reply is in progress in them or in what they lead to. */
  busy: number;
}

interface PersonDataOptions {
  store: PersonStore;
  recordings: Pick<Recordings, "remove">;
  attachments: Pick<Attachments, "sweep">;
  /** Caught up before a deletion: afterwards nobody knows whose cost that was. */
  costs: Pick<Costs, "catchUp">;
  bus: EventBus;
  system: System;
}

export type PersonData = ReturnType<typeof createPersonData>;

export function createPersonData({
  store, recordings, attachments, costs, bus, system,
}: PersonDataOptions) {
  const find = async (accountId: number, person: Person): Promise<PersonRecords> => {
    const found = await store.find(accountId, person);
    if (!found) throw conversationNotFound();
    return found;
  };
  return {
    /** Counts what would be deleted; throws Fault 404, like `remove`. */
    count: async (accountId: number, person: Person): Promise<PersonCounts> => {
      const { conversations, named, calls, leads } = await find(accountId, person);
      return {
        conversations: conversations.length + (named === null ? 0 : 1), calls: calls.length,
        leads: leads.length, busy: 0,
      };
    },
    remove: async (accountId: number, person: Person, by: By): Promise<PersonCounts> => {
      const found = await find(accountId, person);
      await costs.catchUp(accountId);
      const rows = LIMITS.retentionRowsMax;
      while (await store.forgetAnswers(accountId, rows) === rows);
      const counts: PersonCounts = { conversations: 0, calls: 0, leads: 0, busy: 0 };
      for (const part of partsOf(found)) {
        const done = await store.delete({
          accountId, ...part, by, now: system.now(), busyBefore: counts.busy,
        });
        for (const kind of ["conversations", "calls", "leads", "busy"] as const) {
          counts[kind] += done.deleted[kind];
        }
        bus.publishCommitted(done.events);
        for (const file of done.recordings) await recordings.remove(file);
      }
      publishNoted(bus, accountId);
      // The files of deleted conversations belong to none any more.
      await attachments.sweep();
      return counts;
    },
  };
}

/**
 * Splits the deletion, so that no charge waits behind that of a regular customer. Leads and
 * conversations lead to calls, and the named conversation leads to all, so it goes last: a request
 * repeated after a crash finds the rest.
 */
function* partsOf({ conversations, named, calls, leads }: PersonRecords): Generator<PersonRecords> {
  const most = LIMITS.recordsGonePerWrite;
  const total = calls.length + leads.length + conversations.length + (named === null ? 0 : 1);
  for (let at = 0; at < total; at += most) {
    const cut = <Id>(ids: Id[], before: number): Id[] =>
      ids.slice(Math.max(0, at - before), Math.max(0, at + most - before));
    yield {
      calls: cut(calls, 0), leads: cut(leads, calls.length),
      conversations: cut(conversations, calls.length + leads.length),
      named: at + most < total ? null : named,
    };
  }
}
