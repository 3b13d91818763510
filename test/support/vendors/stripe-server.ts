// Stripe Checkout as its documentation describes it, on this machine: sessions are created with the
// documented form, and reported with the documented signature. The emulator that comes with the
// tests knows only sessions of stored prices, and signs nothing.
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { listenLocally } from "#support/local-server.ts";

export const STRIPE_KEY = "sk_test_of_the_double";
export const STRIPE_SECRET = "whsec_of_the_double";

interface StripeSession {
  id: string;
  form: URLSearchParams;
}

interface StripeServer {
  url: string;
  sessions: StripeSession[];
  close(): Promise<void>;
}

export async function startStripeServer(): Promise<StripeServer> {
  const sessions: StripeSession[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const answer = (status: number, json: object): void =>
        void response.writeHead(status, { "content-type": "application/json" })
          .end(JSON.stringify(json));
      if (request.headers.authorization !== `Bearer ${STRIPE_KEY}`) {
        return answer(401, { error: { type: "invalid_request_error", message: "Invalid API Key" } });
      }
      const form = new URLSearchParams(body);
      const cents = Number(form.get("line_items[0][price_data][unit_amount]"));
      const isWhole = request.method === "POST" && request.url === "/v1/checkout/sessions"
        && request.headers["content-type"]?.startsWith("application/x-www-form-urlencoded")
        && form.get("mode") === "payment" && Number.isInteger(cents) && cents >= 50
        && form.get("line_items[0][quantity]") === "1"
        && form.get("line_items[0][price_data][currency]") === "usd"
        && form.get("line_items[0][price_data][product_data][name]")
        && URL.canParse(form.get("success_url") ?? "");
      if (!isWhole) return answer(400, { error: { type: "invalid_request_error", message: body } });
      const id = `cs_test_${sessions.length}${"a".repeat(20)}`;
      sessions.push({ id, form });
      answer(200, {
        id, object: "checkout.session", mode: "payment", status: "open", payment_status: "unpaid",
        currency: "usd", amount_total: cents, url: `https://checkout.stripe.com/c/pay/${id}`,
      });
    });
  });
  const { url, close } = await listenLocally(server);
  return {
    url,
    sessions,
    close,
  };
}

interface Reported {
  type?: string;
  session: string;
  cents: number;
  status?: string;
  currency?: string;
}

/** A report as Stripe sends it; signed with another secret or at another time on demand. */
export function stripeReport(
  { type = "checkout.session.completed", session, cents, status = "paid", currency = "usd" }: Reported,
  seconds: number, secret = STRIPE_SECRET,
): { body: string; signature: string } {
  const body = JSON.stringify({
    id: "evt_1", object: "event", type, livemode: false,
    data: { object: {
      id: session, object: "checkout.session", mode: "payment", payment_status: status, currency,
      amount_total: cents, status: "complete",
    } },
  });
  const mac = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  return { body, signature: `t=${seconds},v1=${mac},v0=${"0".repeat(64)}` };
}
