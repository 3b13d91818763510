// The settings of prices and of how accounts put money in. Part of settings.ts.
import { formatMicros } from "#core/money.ts";
import { setting } from "./setting.ts";
import { dollars, problem, text, url, type Parse } from "./values.ts";

const PLACEHOLDER = /\{(?:account_id|name|email)\}/g;

const topUpLink: Parse<string | null> = (value) => {
  const filled = value.replaceAll(PLACEHOLDER, "1");
  return URL.canParse(filled) && /^https?:$/.test(new URL(filled).protocol) && !/[{}]/.test(filled)
    ? value
    : problem("must be an http(s) URL; {account_id}, {name} and {email} may stand in it");
};

export const MONEY_SETTINGS = {
  PARLEY_MESSAGE_PRICE: setting<number | null>({
    default: 10_000, description: "Price of an answered message in USD; 0: messages are not billed and need no balance",
    parse: dollars, spell: formatMicros,
  }),
  PARLEY_CALL_PRICE: setting<number | null>({
    default: 100_000, description: "Price of a minute of a call in USD, billed by the second from 30 seconds on; 0: calls are not billed and need no balance",
    parse: dollars, spell: formatMicros,
  }),
  PARLEY_TOPUP_URL: setting<string | null>({
    default: null, description: "Where accounts add money: your own payment link, in which {account_id}, {name} and {email} are filled in; absent, and without PARLEY_STRIPE_KEY: they ask you",
    parse: topUpLink,
  }),
  PARLEY_STRIPE_KEY: setting<string | null>({
    default: null, description: "Secret key of a Stripe account: accounts add money at Stripe Checkout",
    parse: text, secret: true,
  }),
  PARLEY_STRIPE_WEBHOOK_SECRET: setting<string | null>({
    default: null, description: "Signing secret of that account's webhook to /payments/stripe (checkout.session.completed, checkout.session.async_payment_succeeded)",
    parse: text, secret: true,
  }),
  PARLEY_STRIPE_URL: setting<string | null>({
    default: "https://api.stripe.com", description: "Server of PARLEY_STRIPE_KEY", parse: url,
  }),
};
