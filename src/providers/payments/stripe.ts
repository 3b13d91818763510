// Stripe Checkout: one request and one signed webhook, over the program's own REST client. Stripe's
// package would add several megabytes of other resources for these two. Opened by app/money.ts.
import { createHmac, timingSafeEqual } from "node:crypto";
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { System } from "#core/system.ts";
import { jsonOf } from "#core/values.ts";
import {
  createRestClient, HOSTED_REST_LIMITS, isDone,
} from "#providers/carriers/hosted/rest.ts";
import type { PaymentPage, PaymentReport } from "./port.ts";

interface StripeOptions {
  /** `https://api.stripe.com` */
  url: string;
  key: string;
  webhookSecret: string;
  system: System;
}

/** The value of Stripe's own libraries: an older report may be a replay. */
const TOLERANCE_SECONDS = 300;

const Session = TypeCompiler.Compile(Type.Object({
  id: Type.String({ minLength: 1, maxLength: 255 }),
  url: Type.String({ pattern: "^https?://" }),
}));
const Report = TypeCompiler.Compile(Type.Object({
  type: Type.String(),
  data: Type.Object({ object: Type.Object({
    id: Type.String(),
    payment_status: Type.String(),
    currency: Type.Union([Type.String(), Type.Null()]),
    amount_total: Type.Union([Type.Integer(), Type.Null()]),
  }) }),
}));

/** Either event may report that a session is paid: some payment methods take days. */
const PAID = new Set(["checkout.session.completed", "checkout.session.async_payment_succeeded"]);

function isGenuine(
  { signature, body }: { signature: string; body: Buffer }, secret: string, nowSeconds: number,
): boolean {
  const parts = signature.split(",").map((part) => part.trim().split("="));
  const time = parts.find(([name]) => name === "t")?.[1] ?? "";
  if (!/^\d{1,12}$/.test(time)) return false;
  if (Math.abs(nowSeconds - Number(time)) > TOLERANCE_SECONDS) return false;
  const wanted = createHmac("sha256", secret).update(`${time}.`).update(body).digest();
  return parts.some(([name, value = ""]) => {
    const given = Buffer.from(value, "hex");
    return name === "v1" && given.length === wanted.length && timingSafeEqual(given, wanted);
  });
}

function reportFrom(body: Buffer): PaymentReport {
  const report = jsonOf(body.toString("utf8"));
  if (!Report.Check(report) || !PAID.has(report.type)) return { kind: "other" };
  const { id, payment_status: status, currency, amount_total: cents } = report.data.object;
  const isPaid = status === "paid" && currency === "usd" && cents !== null && cents > 0;
  return isPaid ? { kind: "paid", sessionId: id, cents } : { kind: "other" };
}

export function createStripe({ url, key, webhookSecret, system }: StripeOptions): PaymentPage {
  const client = createRestClient({
    vendor: "Stripe", root: url, authorization: () => `Bearer ${key}`, limits: HOSTED_REST_LIMITS,
  });
  return {
    open: async ({ what, accountId, cents, backUrl, key: own }) => {
      const answer = await client.ask("POST", "/v1/checkout/sessions", { form: [
        ["mode", "payment"],
        ["line_items[0][quantity]", "1"],
        ["line_items[0][price_data][currency]", "usd"],
        ["line_items[0][price_data][unit_amount]", String(cents)],
        ["line_items[0][price_data][product_data][name]", what],
        ["success_url", backUrl],
        ["cancel_url", backUrl],
        ["client_reference_id", String(accountId)],
        ["metadata[parley_top_up]", own],
      ] });
      if (!isDone(answer) || !Session.Check(answer.body)) throw client.refusal(answer);
      return { sessionId: answer.body.id, url: answer.body.url };
    },
    read: (given) => isGenuine(given, webhookSecret, Math.floor(system.now() / 1_000_000))
      ? reportFrom(given.body)
      : { kind: "refused" },
    close: client.close,
  };
}
