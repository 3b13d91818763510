// Phone numbers of an account: records, store ports, use cases of their owner. Buying is in
// purchases.ts, monthly billing in billing.ts and renewals.ts.
import { Fault } from "#core/faults.ts";
import type { Micros } from "#core/money.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent } from "#events/events.ts";
import type { NumberStatus } from "./billing.ts";

export type PhoneNumberType = "normal" | "sip" | "caller_id";

export interface PhoneNumber {
  id: number;
  accountId: number;
  /** E.164, or the extension of a SIP trunk. */
  phoneNumber: string;
  /** Two letters. */
  countryCode: string;
  type: PhoneNumberType;
  /** The provider it was bought from; null: it is a trunk's number or a caller id. */
  provider: string | null;
  nickname: string | null;
  smsCapable: boolean;
  region: string | null;
  /** Price of a month; 0 for numbers that were not bought here. */
  monthlyMicros: Micros;
  status: NumberStatus;
  /** Null: no subscription. */
  paidUntil: Instant | null;
  /** While unpaid: when the next, worse state begins. */
  graceUntil: Instant | null;
  /** When its owner released it; it stays until `paidUntil`. */
  releasedAt: Instant | null;
  createdAt: Instant;
}

/** The view for other features: numbers that can be assigned and called from. */
export interface PhoneNumberStore {
  /** Null when the account has no such number, or it is suspended. */
  find(accountId: number, phoneNumberId: number): Promise<PhoneNumber | null>;
  /** All numbers of the account that are not suspended, oldest first. */
  list(accountId: number): Promise<PhoneNumber[]>;
}

export type ReleaseOutcome =
  | { kind: "scheduled" | "removed"; type: PhoneNumberType; events: CommittedEvent[] }
  | { kind: "repeated" }
  | { kind: "not_found" };

/** The owner's view, including suspended numbers. Each write is one transaction. */
export interface OwnedNumberStore extends PhoneNumberStore {
  findOwned(accountId: number, phoneNumberId: number): Promise<PhoneNumber | null>;
  /** Oldest first. */
  listOwned(accountId: number): Promise<PhoneNumber[]>;
  /** False when the account has no such number. */
  rename(args: {
    accountId: number; phoneNumberId: number; nickname: string | null;
  }): Promise<boolean>;
  /** A paid number stays until `paidUntil`; any other is removed at once, from its users too. */
  release(args: {
    accountId: number; phoneNumberId: number; now: Instant;
  }): Promise<ReleaseOutcome>;
}

/** Names of the types in the list of assignable numbers; the list of all numbers has others. */
export const ASSIGNABLE_TYPE_LABELS: Record<PhoneNumberType, string> = {
  normal: "Normal",
  sip: "SIP",
  caller_id: "Caller ID",
};

/** A caller id number is only shown to callees; it cannot receive calls here. */
export function takesInboundCalls(type: PhoneNumberType): boolean {
  return type !== "caller_id";
}

const numberNotFound = (): Fault => new Fault(404, "Phone number not found.");

export interface OwnedNumbers {
  /** Fault 404 when the account has no such number. */
  get(accountId: number, phoneNumberId: number): Promise<PhoneNumber>;
  list(accountId: number): Promise<PhoneNumber[]>;
  /** Fault 404. */
  rename(accountId: number, phoneNumberId: number, nickname: string | null): Promise<PhoneNumber>;
  /** Throws Fault 404, or 400 when it is released already. Resolves to its type. */
  release(accountId: number, phoneNumberId: number): Promise<PhoneNumberType>;
  /** The handler receives each number that was removed at once when its owner released it. */
  onRemoved(handler: (phoneNumberId: number) => Promise<void>): void;
}

export function createOwnedNumbers(
  { store, bus, system }: { store: OwnedNumberStore; bus: EventBus; system: System },
): OwnedNumbers {
  const handlers = new Set<(phoneNumberId: number) => Promise<void>>();
  const get = async (accountId: number, phoneNumberId: number): Promise<PhoneNumber> => {
    const number = await store.findOwned(accountId, phoneNumberId);
    if (!number) throw numberNotFound();
    return number;
  };
  return {
    get,
    list: (accountId) => store.listOwned(accountId),
    rename: async (accountId, phoneNumberId, nickname) => {
      const isThere = await store.rename({ accountId, phoneNumberId, nickname });
      if (!isThere) throw numberNotFound();
      return get(accountId, phoneNumberId);
    },
    release: async (accountId, phoneNumberId) => {
      const outcome = await store.release({ accountId, phoneNumberId, now: system.now() });
      if (outcome.kind === "not_found") throw numberNotFound();
      if (outcome.kind === "repeated") {
        throw new Fault(400, "Phone number is already scheduled for release.");
      }
      bus.publishCommitted(outcome.events);
      if (outcome.kind === "removed") {
        await Promise.all([...handlers].map((handler) => handler(phoneNumberId)));
      }
      return outcome.type;
    },
    onRemoved: (handler) => void handlers.add(handler),
  };
}
