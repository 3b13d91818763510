// Phone numbers of an account: records, store ports, what their owner does with them. Buying one is
// in purchases.ts, what it costs month by month in billing.ts and renewals.ts.
import { Fault } from "#core/faults.ts";
import type { Micros } from "#core/money.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent } from "#events/events.ts";
import type { NumberStatus } from "./billing.ts";

const PHONE_NUMBER_TYPES = ["normal", "sip", "caller_id"] as const;
export type PhoneNumberType = (typeof PHONE_NUMBER_TYPES)[number];

export interface PhoneNumber {
  id: number;
  accountId: number;
  /** E.164, or what a SIP trunk calls itself. */
  phoneNumber: string;
  /** Two letters. */
  countryCode: string;
  type: PhoneNumberType;
  /** Whom it was bought from; null: nobody, it is a trunk's or only shown. */
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
  /** When its owner gave it up; it stays until `paidUntil`. */
  releasedAt: Instant | null;
  createdAt: Instant;
}

/** What other features see: numbers that can be given to assistants and called from. */
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

/** What the owner sees: suspended numbers too. Writes are one transaction each. */
export interface OwnedNumberStore extends PhoneNumberStore {
  findOwned(accountId: number, phoneNumberId: number): Promise<PhoneNumber | null>;
  /** Oldest first. */
  listOwned(accountId: number): Promise<PhoneNumber[]>;
  /** False when the account has no such number. */
  rename(args: {
    accountId: number; phoneNumberId: number; nickname: string | null;
  }): Promise<boolean>;
  /** What is paid for stays until then; all else goes at once, also from those that use it. */
  release(args: {
    accountId: number; phoneNumberId: number; now: Instant;
  }): Promise<ReleaseOutcome>;
}

/** What the list of assignable numbers calls the types; the list of all numbers has other words. */
export const ASSIGNABLE_TYPE_LABELS: Record<PhoneNumberType, string> = {
  normal: "Normal",
  sip: "SIP",
  caller_id: "Caller ID",
};

/** A caller id number can only be shown to the called; nobody can ring it here. */
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
  /** Fault 404; Fault 400 when it is given up already. Resolves to its type. */
  release(accountId: number, phoneNumberId: number): Promise<PhoneNumberType>;
  /** The handler receives each number that went at once because its owner gave it up. */
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
