// Who did what in an account: records, store port, and how they are read. What people and keys do
// is recorded in the transaction that does it: by storage/deeds.ts, or by the commands of members,
// keys and sessions themselves. Actions without a transaction are recorded by app/noting.ts.
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import { auditTopic, type Author, type Topic } from "#events/events.ts";

/** Who acted. `system`: the operator at the command line, or the program by itself. */
export interface Actor extends Author {
  kind: "user" | "key" | "system";
}

/** What is recorded about an action; never a secret. */
export interface AuditNote {
  actor: Actor;
  /** `member.remove` */
  action: string;
  /** The object of the action. */
  object: { type: string; id: string | null } | null;
  /** Small facts, such as the values before and after, or the fields that were sent. */
  details: Record<string, unknown>;
  /** Where the request came from; null: from this machine's command line. */
  address: string | null;
}

/** Who acts and from where, as passed to a command; the command knows the rest. */
export type By = Pick<AuditNote, "actor" | "address">;

export const BY_OPERATOR: By =
  { actor: { kind: "system", id: "system", name: "Command line" }, address: null };

export interface AuditEntry extends AuditNote {
  /** 1, 2, 3 … per account, without gaps. */
  number: number;
  createdAt: Instant;
}

export interface AuditFilter {
  actorId?: string;
  /** One action, or a prefix that ends in a dot. */
  action?: string;
  objectId?: string;
  from?: Instant;
  /** Exclusive. */
  to?: Instant;
}

export interface AuditStore {
  /** Newest first, below `before`; null: from the newest. */
  page(
    accountId: number, filter: AuditFilter, before: number | null, rows: number,
  ): Promise<AuditEntry[]>;
  /** Oldest first, above `after`. */
  after(accountId: number, after: number, rows: number): Promise<AuditEntry[]>;
  newest(accountId: number): Promise<number>;
  add(args: { accountId: number; note: AuditNote; now: Instant }): Promise<void>;
  /** Removes up to `rows` entries older than `before`, oldest first; resolves to how many. */
  trim(before: Instant, rows: number): Promise<number>;
}

export interface AuditLog extends Omit<AuditStore, "add"> {
  add(accountId: number, note: AuditNote): Promise<void>;
  /** A command has recorded something: the watchers of the account's log read on. */
  publish(accountId: number): void;
  /** The same for every watched account, because other processes record entries too. */
  look(): Promise<void>;
}

/** A command has recorded something: the watchers of the account's log read on. */
export const publishNoted = (bus: EventBus, accountId: number): void =>
  bus.publish(auditTopic(accountId), { kind: "missed" });

export function createAuditLog(
  { store, bus, system }: { store: AuditStore; bus: EventBus; system: System },
): AuditLog {
  const watched = new Set<Topic>();
  bus.onInterest(({ topic, isWatched }) => {
    if (!topic.startsWith("audit:")) return;
    if (isWatched) watched.add(topic);
    else watched.delete(topic);
  });
  return {
    ...store,
    add: async (accountId, note) => {
      await store.add({ accountId, note, now: system.now() });
      publishNoted(bus, accountId);
    },
    publish: (accountId) => publishNoted(bus, accountId),
    look: async () => {
      for (const topic of watched) bus.publish(topic, { kind: "missed" });
    },
  };
}
