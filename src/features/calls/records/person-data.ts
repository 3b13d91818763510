// Deletes all that is kept of one person: conversations, calls with their recordings, leads. Who it
// is, a conversation or a telephone number says. The ledger, the audit log and the do-not-call list
// stay. Records → store port → factory.
import { publishNoted, type By } from "#features/accounts/audit.ts";
import type { Attachments } from "#features/conversations/attachments.ts";
import { conversationNotFound } from "#features/conversations/outcomes.ts";
import { LIMITS } from "#core/limits.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent } from "#events/events.ts";
import type { Recordings } from "./recordings.ts";

/**
 * Whoever had the conversation: its other conversations with the same assistant under the same id,
 * and the number where that id is one. Or whoever has the number, in all of the account.
 */
export type Person = { conversationId: string } | { phoneNumber: string };

interface PersonRecords {
  /** Without the one that was named. */
  conversations: string[];
  /** The conversation that leads to all; null: a number does. */
  named: string | null;
  calls: number[];
  /** Without secondary contacts, which go with their leads. */
  leads: number[];
}

export interface PersonStore {
  /** Null: there is no such conversation. */
  find(accountId: number, person: Person): Promise<PersonRecords | null>;
  /**
   * One transaction, noted with how many there were of each. What was named stays, and counts as
   * busy, where any other is or `busyBefore` were: whoever asks again finds those by it.
   */
  delete(args: PersonRecords & {
    accountId: number; by: By; now: Instant; busyBefore: number;
  }): Promise<{
    deleted: PersonCounts;
    /** Files of calls, which nothing names any more. */
    recordings: string[];
    events: CommittedEvent[];
  }>;
}

export interface PersonCounts {
  conversations: number;
  calls: number;
  leads: number;
  /** In them, or elsewhere where they lead to, somebody is spoken or written with: they stay. */
  busy: number;
}

interface PersonDataOptions {
  store: PersonStore;
  recordings: Pick<Recordings, "remove">;
  attachments: Pick<Attachments, "sweep">;
  bus: EventBus;
  system: System;
}

export type PersonData = ReturnType<typeof createPersonData>;

export function createPersonData({
  store, recordings, attachments, bus, system,
}: PersonDataOptions) {
  const find = async (accountId: number, person: Person): Promise<PersonRecords> => {
    const found = await store.find(accountId, person);
    if (!found) throw conversationNotFound();
    return found;
  };
  return {
    /** What would go; throws Fault 404, like `remove`. */
    count: async (accountId: number, person: Person): Promise<PersonCounts> => {
      const { conversations, named, calls, leads } = await find(accountId, person);
      return {
        conversations: conversations.length + (named === null ? 0 : 1), calls: calls.length,
        leads: leads.length, busy: 0,
      };
    },
    remove: async (accountId: number, person: Person, by: By): Promise<PersonCounts> => {
      const found = await find(accountId, person);
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
      // Their files are in no conversation any more.
      await attachments.sweep();
      return counts;
    },
  };
}

/**
 * So that no charge waits behind a regular customer. Leads and conversations lead to calls, and the
 * conversation that was named to all: who asks again after a crash in between finds the rest.
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
