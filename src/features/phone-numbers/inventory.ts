// The operator's own stock of numbers: its store port. Filled by `parley number import`, sold
// through providers/numbers/inventory.ts.
import type { Instant } from "#core/system.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { Shelf, StockedNumber } from "#providers/numbers/port.ts";

export interface NewStock extends StockedNumber {
  /** The hosted carrier that the number is at; null: none; absent: none, or what is known. */
  carrier?: HostedAccount | null;
}

/** A known number whose carrier changed. */
export interface MovedNumber {
  phoneNumber: string;
  from: HostedAccount | null;
  to: HostedAccount | null;
}

export interface ListedNumber extends NewStock {
  carrier: HostedAccount | null;
  /** The account that bought it; null: not sold. */
  accountId: number | null;
}

export interface NumberInventory extends Shelf {
  /** Resolves to how many are new; of known numbers, only the carrier is updated, if given. */
  stock(args: { numbers: NewStock[]; now: Instant }): Promise<{
    imported: number; moved: MovedNumber[];
  }>;
  /** All numbers, ordered by number. */
  list(): Promise<ListedNumber[]>;
}
