// How an account tops up its balance, as the operator has set it up: at a payment page whose
// reports are credited, at a link of the operator's own, or not at all. Called by
// balance-routes.ts.
import { Fault } from "#core/faults.ts";
import { MICROS_PER_DOLLAR, type Micros } from "#core/money.ts";
import type { Instant, System } from "#core/system.ts";
import type { PaymentPage } from "#providers/payments/port.ts";
import type { Accounts } from "#features/accounts/accounts.ts";

export interface TopUpStore {
  /** Called once per payment session. */
  add(args: {
    sessionId: string; accountId: number; amountMicros: Micros; now: Instant;
  }): Promise<void>;
  /** Null: no account here opened it. */
  accountOf(sessionId: string): Promise<number | null>;
}

export const TOP_UP_CENTS_MIN = 100;
export const TOP_UP_CENTS_MAX = 1_000_000;
const MICROS_PER_CENT = MICROS_PER_DOLLAR / 100;

type TopUpWay = "checkout" | "link" | "none";

interface TopUpOptions {
  store: TopUpStore;
  accounts: Pick<Accounts, "find" | "credit">;
  /** Null: not set up. */
  payments: PaymentPage | null;
  /** May contain `{account_id}`, `{name}` and `{email}`; null: not set up. */
  link: string | null;
  system: System;
}

export interface TopUps {
  way: TopUpWay;
  /** Where to pay. Throws Fault 409 where nothing is set up. */
  begin(accountId: number, cents: number, backUrl: string): Promise<string>;
  /** Credits what was paid, once for each session. */
  receive(
    report: { signature: string; body: Buffer },
  ): Promise<"refused" | "other" | "credited" | "repeated">;
  close(): Promise<void>;
}

export function createTopUps(options: TopUpOptions): TopUps {
  const { store, accounts, payments, link, system } = options;
  return {
    way: payments ? "checkout" : link === null ? "none" : "link",
    begin: async (accountId, cents, backUrl) => {
      const account = await accounts.find(accountId);
      if (!account) throw new Fault(404, "Account not found.");
      const { name, email } = account;
      if (payments) {
        const opened = await payments.open({
          what: `Credit for ${name}`, accountId, cents, backUrl, key: system.uuid(),
        });
        const { sessionId, url } = opened;
        const amountMicros = cents * MICROS_PER_CENT;
        await store.add({ sessionId, accountId, amountMicros, now: system.now() });
        return url;
      }
      if (link === null) throw new Fault(409, "No way to pay is configured on this server: ask its operator.");
      const values: Record<string, string> = { account_id: String(accountId), name, email };
      return link.replaceAll(/\{(account_id|name|email)\}/g, (_, what: string) =>
        encodeURIComponent(values[what] ?? ""));
    },
    receive: async (given) => {
      const report = payments?.read(given) ?? { kind: "refused" };
      if (report.kind !== "paid") return report.kind;
      const accountId = await store.accountOf(report.sessionId);
      // The operator's account there may sell other things.
      if (accountId === null) return "other";
      const outcome = await accounts.credit(
        accountId, report.cents * MICROS_PER_CENT, `credit:stripe:${report.sessionId}`);
      return outcome.kind === "entered" ? "credited" : "repeated";
    },
    close: async () => payments?.close(),
  };
}
