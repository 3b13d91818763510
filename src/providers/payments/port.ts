// The port of payments: a page elsewhere that takes money, and its report that it was paid. Called
// by features/accounts/money/top-ups.ts; opened by app/money.ts.

interface NewPayment {
  /** What is being paid for, as the payer reads it. */
  what: string;
  accountId: number;
  cents: number;
  /** Where the payer goes after paying, or after giving up. */
  backUrl: string;
  /** Idempotency key: two requests with it make one payment. */
  key: string;
}

export type PaymentReport =
  /** Not signed as it should be. */
  | { kind: "refused" }
  | { kind: "other" }
  | { kind: "paid"; sessionId: string; cents: number };

export interface PaymentPage {
  /** In USD. Rejects with a ProviderError. */
  open(payment: NewPayment): Promise<{ sessionId: string; url: string }>;
  read(report: { signature: string; body: Buffer }): PaymentReport;
  /** Idempotent. */
  close(): Promise<void>;
}
