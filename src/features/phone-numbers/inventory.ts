// The operator's own numbers: the port to where they are kept. Filled by `parley number import`,
// sold through providers/numbers/inventory.ts.
import type { Instant } from "#core/system.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { Shelf, StockedNumber } from "#providers/numbers/port.ts";

export interface NewStock extends StockedNumber {
  /** The hosted carrier it is at; null: at none. */
  carrier: HostedAccount | null;
}

export interface ListedNumber extends NewStock {
  /** Who bought it; null: free. */
  accountId: number | null;
}

export interface NumberInventory extends Shelf {
  /** Resolves to how many are new; those that are there only have their carrier changed, if any. */
  stock(args: { numbers: NewStock[]; now: Instant }): Promise<number>;
  /** All, by number. */
  list(): Promise<ListedNumber[]>;
}
