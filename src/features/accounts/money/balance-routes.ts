// The wire of the balance: how long it lasts, who is notified when it runs low, and how it is
// topped up.
import { Type, type Static } from "@sinclair/typebox";
import { Fault, fieldFault } from "#core/faults.ts";
import { dollarsFromMicros, MICROS_PER_DOLLAR } from "#core/money.ts";
import { about, named, Nullable } from "#core/schema.ts";
import { isoOrNull } from "#core/system.ts";
import { Moment } from "#http/answers.ts";
import { API_ROOT } from "#http/api.ts";
import { json, type HttpRoute } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { ALERTS_MAX, type Balance, type BalanceAlerts, type Outlook } from "./balance.ts";
import type { Costs } from "./costs.ts";
import { TOP_UP_CENTS_MAX, TOP_UP_CENTS_MIN, type TopUps } from "./top-ups.ts";

const AMOUNT_MAX = 1_000_000;

const AlertsSchema = Type.Object({
  amounts: Type.Array(Type.Number({ minimum: 0, maximum: AMOUNT_MAX }), {
    maxItems: ALERTS_MAX,
    ...about("Amounts in USD. Each alerts once when the balance falls to or below it, until the "
      + "balance has been above it again.",
      [20, 5]),
  }),
  emails: Type.Array(Type.String({ pattern: "^[^\\s@<>\"]+@[^\\s@<>\"]+$", maxLength: 254 }), {
    maxItems: ALERTS_MAX,
    ...about("Addresses that get a mail, in addition to the webhook event `balance_low`.",
      ["ada@example.org"]),
  }),
}, named("BalanceAlerts", "When the account is alerted to a low balance, and who is notified."));
const BalanceSchema = Type.Object({
  currency: Type.Literal("USD", about("The currency of all amounts.")),
  balance: Type.Number(about("The balance.", 4.88)),
  reserved: Type.Number(about("The part reserved for running replies and calls.", 0)),
  per_day: Type.Number(about(
    "Average daily spend over the last seven days, without the operator's own debits.", 1.2)),
  lasts_until: Nullable(Moment(
    "When the balance runs out at that pace; null if nothing is spent or it lasts for years.")),
  state: Type.String(about(
    "ok; low: lasts three days at most; empty: not enough for a message or a call.", "ok")),
  alerts: AlertsSchema,
  sends_mail: Type.Boolean(about("Whether the server can send mail.")),
  top_up: Type.String(about(
    "How to top up: checkout (a payment page), link (the operator's own page) or none.",
    "checkout")),
});

interface BalanceRouteOptions {
  balance: Balance;
  costs: Pick<Costs, "catchUp">;
  topUps: TopUps;
  sendsMail: boolean;
}

const COMMON = { tag: "Account", errorShape: "message" } as const;

const wireAlerts = ({ amountsMicros, emails }: BalanceAlerts): Static<typeof AlertsSchema> =>
  ({ amounts: amountsMicros.map(dollarsFromMicros), emails });

export const wireOutlook = ({ state, lastsUntil }: Outlook) =>
  ({ state, lasts_until: isoOrNull(lastsUntil) });

export function balanceRoutes(options: BalanceRouteOptions): Route[] {
  return [readRoute(options), alertsRoute(options), topUpRoute(options)];
}

function readRoute({ balance, costs, topUps, sendsMail }: BalanceRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/balance",
    summary: "Get the balance and how long it lasts",
    description: "Returns the balance, how long it lasts at the pace of the last seven days, who "
      + "is alerted when it runs low, and how to top up.",
    responses: { 200: { description: "The balance", schema: BalanceSchema } },
    handle: async ({ caller: { accountId } }) => {
      await costs.catchUp(accountId);
      const outlook = await balance.outlook(accountId);
      if (!outlook) throw new Fault(404, "Account not found.");
      return json(200, {
        currency: "USD",
        balance: dollarsFromMicros(outlook.balanceMicros),
        reserved: dollarsFromMicros(outlook.reservedMicros),
        per_day: dollarsFromMicros(outlook.perDayMicros),
        ...wireOutlook(outlook),
        alerts: wireAlerts(await balance.alerts(accountId)),
        sends_mail: sendsMail,
        top_up: topUps.way,
      });
    },
  });
}

function alertsRoute({ balance }: BalanceRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "PUT",
    path: "/user/balance/alerts",
    summary: "Set alerts for a low balance",
    description: "When the balance falls to or below an amount, Parley sends a `balance_low` event "
      + "to webhooks and a mail to each address. Each amount alerts once, until the balance has "
      + "been above it again.",
    body: AlertsSchema,
    responses: { 200: { description: "The alerts as saved", schema: AlertsSchema } },
    handle: async ({ caller, body: { amounts, emails } }) => {
      const amountsMicros = amounts.map((amount) => Math.round(amount * MICROS_PER_DOLLAR));
      return json(200, wireAlerts(
        await balance.setAlerts(caller.accountId, { amountsMicros, emails })));
    },
  });
}

function topUpRoute({ topUps }: BalanceRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/top-ups",
    summary: "Top up the balance",
    description: "Returns where to pay: a payment page for the amount, credited as soon as the "
      + "payment is confirmed, or the operator's own link. On 409, ask your operator.",
    body: Type.Object({
      amount: Type.Optional(Type.Number({
        minimum: TOP_UP_CENTS_MIN / 100, maximum: TOP_UP_CENTS_MAX / 100,
        ...about("The amount in USD, in whole cents. Required for a payment page; not needed for "
          + "the operator's own link.", 25),
      })),
    }),
    responses: {
      201: {
        description: "Where to pay",
        schema: Type.Object({
          url: Type.String(about("The page to open in a browser.", "https://pay.example.com/s/1")),
        }),
      },
      409: { description: "No way to pay is configured on this server" },
    },
    handle: async ({ caller, body: { amount = 0 }, baseUrl }) => {
      const backUrl = `${baseUrl.slice(0, -API_ROOT.length)}/#/money`;
      const cents = Math.round(amount * 100);
      if (cents === 0 && topUps.way === "checkout") {
        throw fieldFault("amount", "The amount field is required.");
      }
      return json(201, { url: await topUps.begin(caller.accountId, cents, backUrl) });
    },
  });
}

const REPORT_BYTES_MAX = 256 * 1024;

/** The webhook that the payment provider reports to, authenticated by its signature alone. */
export const paymentRoute = (topUps: Pick<TopUps, "receive">): HttpRoute => ({
  method: "POST",
  pattern: "/payments/stripe",
  bodyBytesMax: REPORT_BYTES_MAX,
  handle: async (http) => {
    const signature = http.headers["stripe-signature"] ?? "";
    const outcome = await topUps.receive({ signature, body: http.body });
    if (outcome === "refused") throw new Fault(400, "The signature is not valid.");
    return json(200, { received: true });
  },
});
