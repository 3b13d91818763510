// The operator's own stock of numbers: its store port. Filled by `parley number import`, sold
// through providers/numbers/inventory.ts.
import type { Instant } from "#core/system.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { Shelf, StockedNumber } from "#providers/numbers/port.ts";

export interface NewStock extends StockedNumber {
  /** The hosted carrier that the number is at; null: none. */
  carrier: HostedAccount | null;
}

export interface ListedNumber extends NewStock {
  /** The account that bought it; null: not sold. */
  accountId: number | null;
}

export interface NumberInventory extends Shelf {
  /** Resolves to how many are new; of known numbers, only the carrier is updated, if given. */
  stock(args: { numbers: NewStock[]; now: Instant }): Promise<number>;
  /** All numbers, ordered by number. */
  list(): Promise<ListedNumber[]>;
}
