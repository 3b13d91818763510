// The port to whoever has telephone numbers to give: search, take one, give it back.
// Implementations: the embedded inventory and Twilio.
import type { Micros } from "#core/money.ts";

export interface OfferedNumber {
  /** E.164. */
  phoneNumber: string;
  /** Two letters. */
  countryCode: string;
  smsCapable: boolean;
  /** Where the provider handles it, in the provider's words; null when it does not say. */
  region: string | null;
  addressRequirements: "none" | "local" | "foreign";
  /** Price of a month; null: the price list's, by country. */
  monthlyMicros: Micros | null;
}

/** A number of the operator's own. */
export interface StockedNumber {
  /** E.164. */
  phoneNumber: string;
  countryCode: string;
  smsCapable: boolean;
  /** A month; null: the price list's, by country. */
  monthlyMicros: Micros | null;
}

/** Where those are taken from. Writes are one transaction each. */
export interface Shelf {
  /** Free numbers of the country, by number. */
  findFree(countryCode: string, contains: string, most: number): Promise<StockedNumber[]>;
  findFreeNumber(phoneNumber: string): Promise<StockedNumber | null>;
  /** True also when the same purchase had taken it before; false when it is not to be had. */
  take(args: { phoneNumber: string; purchaseUuid: string }): Promise<boolean>;
  isTaken(purchaseUuid: string): Promise<boolean>;
  /** Does nothing once the number is somebody else's. */
  putBack(purchaseUuid: string): Promise<void>;
}

interface SoughtNumber {
  phoneNumber: string;
  /** Its digits without the country's. */
  nationalDigits: string;
  /** It is of one of these. */
  countryCodes: string[];
}

/**
 * `unavailable` and `refused`: certainly not taken, `refused` for a reason that is not the number.
 * `unknown`: the request left and no answer came, so the number may be taken by now or soon.
 */
export type Provisioning =
  | { kind: "provisioned"; sid: string }
  | { kind: "unavailable" }
  | { kind: "refused"; reason: string }
  | { kind: "unknown"; reason: string };

/** Where `provision` says `unknown`, the others reject with ProviderError. */
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
