// The port to providers of telephone numbers: search for one, take it, give it back.
// Implementations: the embedded inventory and Twilio.
import type { Micros } from "#core/money.ts";

export interface OfferedNumber {
  /** E.164. */
  phoneNumber: string;
  /** Two letters. */
  countryCode: string;
  smsCapable: boolean;
  /** Where the provider handles the number, in its own words; null when it does not say. */
  region: string | null;
  addressRequirements: "none" | "local" | "foreign";
  /** Monthly price; null: that of the price list, by country. */
  monthlyMicros: Micros | null;
}

/** A number of the operator's own. */
export interface StockedNumber {
  /** E.164. */
  phoneNumber: string;
  countryCode: string;
  smsCapable: boolean;
  /** Monthly price; null: that of the price list, by country. */
  monthlyMicros: Micros | null;
}

/** The stock of those numbers. Writes are one transaction each. */
export interface Shelf {
  /** Free numbers of the country, by number. */
  findFree(countryCode: string, contains: string, most: number): Promise<StockedNumber[]>;
  findFreeNumber(phoneNumber: string): Promise<StockedNumber | null>;
  /** True also when the same purchase had taken it before; false when it is not available. */
  take(args: { phoneNumber: string; purchaseUuid: string }): Promise<boolean>;
  isTaken(purchaseUuid: string): Promise<boolean>;
  /** Does nothing once the number is somebody else's. */
  putBack(purchaseUuid: string): Promise<void>;
}

interface SoughtNumber {
  phoneNumber: string;
  /** Its digits without the country's. */
  nationalDigits: string;
  /** The number belongs to one of these. */
  countryCodes: string[];
}

/**
 * `unavailable` and `refused`: certainly not taken; for `refused` the number is not the reason.
 * `unknown`: the request was sent and not answered, so the number may be taken now or soon.
 */
export type Provisioning =
  | { kind: "provisioned"; sid: string }
  | { kind: "unavailable" }
  | { kind: "refused"; reason: string }
  | { kind: "unknown"; reason: string };

/** Where `provision` resolves to `unknown`, the other methods reject with ProviderError. */
export interface NumberProvider {
  /** Stored with what was bought here: must never change. */
  readonly name: string;
  /** At most `most` numbers that can be had now; `contains` is empty or digits they must have. */
  search(wanted: {
    countryCode: string; contains: string; most: number;
  }): Promise<OfferedNumber[]>;
  /** The number as an offer; null when it cannot be had. */
  find(wanted: SoughtNumber): Promise<OfferedNumber | null>;
  /** Takes the number in the name of the purchase. */
  provision(order: { phoneNumber: string; purchaseId: string }): Promise<Provisioning>;
  /** The id of what was taken in the name of the purchase; null when nothing was, so far. */
  lookUp(order: { phoneNumber: string; purchaseId: string }): Promise<string | null>;
  /** Gives a number back. Doing it again does no harm. */
  release(sid: string): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}
