// The operator's own numbers: the port to where they are kept. Filled by `parley number import`,
// sold through providers/numbers/inventory.ts.
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";

export interface NewStock {
  /** E.164. */
  phoneNumber: string;
  countryCode: string;
  smsCapable: boolean;
  /** A month; null: the price list's, by country. */
  monthlyMicros: Micros | null;
  /** The hosted carrier it is at; null: at none. */
  carrier: HostedAccount | null;
}

export interface StockedNumber extends NewStock {
  /** Who bought it; null: free. */
  accountId: number | null;
}

/** Writes are one transaction each. */
export interface NumberInventory {
  /** Free numbers of the country, by number. */
  findFree(countryCode: string, contains: string, most: number): Promise<StockedNumber[]>;
  findFreeNumber(phoneNumber: string): Promise<StockedNumber | null>;
  /** True also when the same purchase had taken it before; false when it is not to be had. */
  take(args: { phoneNumber: string; purchaseUuid: string }): Promise<boolean>;
  isTaken(purchaseUuid: string): Promise<boolean>;
  /** Does nothing once the number is somebody else's. */
  putBack(purchaseUuid: string): Promise<void>;
  /** Resolves to how many are new; those that are there only have their carrier changed, if any. */
  stock(args: { numbers: NewStock[]; now: Instant }): Promise<number>;
  /** All, by number. */
  list(): Promise<StockedNumber[]>;
}
