// The wire of the balance: how long it lasts, who is notified when it runs low, and how it is
// topped up.
import { Type, type Static } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
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
    ...about("USD; reached or passed on the way down, each is reported once, until the balance was "
      + "above it again.", [20, 5]),
  }),
  emails: Type.Array(Type.String({ pattern: "^[^\\s@<>\"]+@[^\\s@<>\"]+$", maxLength: 254 }), {
    maxItems: ALERTS_MAX,
    ...about("Who has a mail of it, beside the webhook event `balance_low`.", ["ada@example.org"]),
  }),
}, named("BalanceAlerts", "When the account is notified that its balance runs low, and who."));
const BalanceSchema = Type.Object({
  currency: Type.Literal("USD", about("The currency of all amounts.")),
  balance: Type.Number(about("What is left to spend.", 4.88)),
  reserved: Type.Number(about("What running turns and calls hold back of it.", 0)),
  per_day: Type.Number(about(
    "What a day costs at the pace of the last seven, what the operator took not included.", 1.2)),
  lasts_until: Nullable(Moment(
    "Until when the balance lasts at that pace; null: nothing is spent, or it lasts for years.")),
  state: Type.String(about(
    "ok; low: it lasts three days at most; empty: it is not enough for a message or a call.", "ok")),
  alerts: AlertsSchema,
  sends_mail: Type.Boolean(about("Whether the server is set up to send mail.")),
  top_up: Type.String(about(
    "How money is put in: checkout (a payment page), link (the operator's own), none.", "checkout")),
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
    summary: "See how long the balance lasts",
    description: "What is left, how long it lasts at the pace of the last seven days, who is notified "
      + "when it runs low, and how money is put in.",
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
    summary: "Be told when the balance runs low",
    description: "Each amount that the balance reaches or passes on the way down is a `balance_low` "
      + "event, which webhooks receive, and a mail to each address; once, until it was above again.",
    body: AlertsSchema,
    responses: { 200: { description: "As they are now", schema: AlertsSchema } },
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
    summary: "Put money in",
    description: "Answers where to pay: at a payment page for the amount, whose payment is credited "
      + "as soon as it is reported, or at the operator's own link. 409: ask your operator.",
    body: Type.Object({
      amount: Type.Number({
        minimum: TOP_UP_CENTS_MIN / 100, maximum: TOP_UP_CENTS_MAX / 100,
        ...about("USD, in whole cents. The operator's own link does without it.", 25),
      }),
    }),
    responses: {
      201: {
        description: "Where to pay",
        schema: Type.Object({
          url: Type.String(about("To be opened in a browser.", "https://pay.example.com/s/1")),
        }),
      },
      409: { description: "Nothing is set up to pay with" },
    },
    handle: async ({ caller, body, baseUrl }) => {
      const backUrl = `${baseUrl.slice(0, -API_ROOT.length)}/#/money`;
      const cents = Math.round(body.amount * 100);
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
