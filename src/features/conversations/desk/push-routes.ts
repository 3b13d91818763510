// Where a browser of the dashboard subscribes to notifications and unsubscribes.
import { Type } from "@sinclair/typebox";
import { fieldFault } from "#core/faults.ts";
import { about } from "#core/schema.ts";
import { parseHttpUrl } from "#core/values.ts";
import type { Author } from "#events/events.ts";
import { MessageSchema } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import type { Push } from "./push.ts";

interface PushRouteOptions {
  push: Push;
  authorOf(caller: Caller): Promise<Author>;
}

const Endpoint = Type.String({
  ...about("The push service's URL for this browser, as the browser gives it.",
    "https://push.example.com/send/q8Zr1x0V5mB2nK7c"),
  pattern: "^https?://[!-~]+$", maxLength: 1000,
});
/** An uncompressed P-256 point, and a secret of 16 bytes. */
const Keys = Type.Object({
  p256dh: Type.String({
    ...about("The browser's public key, as the browser gives it.",
      "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
    pattern: "^B[A-Za-z0-9_-]{86}=?$",
  }),
  auth: Type.String({
    ...about("The browser's authentication secret, as the browser gives it.",
      "BTBZMqHH6r4Tts7J_aSIgg"),
    pattern: "^[A-Za-z0-9_-]{22}(?:==)?$",
  }),
}, about("The keys that encrypt messages to the browser."));

export function pushRoutes({ push, authorOf }: PushRouteOptions): Route[] {
  const common = { tag: "Conversations", errorShape: "message" } as const;
  const path = "/user/push/subscriptions";
  return [
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/push",
      summary: "Get the public key for push notifications",
      description: "Pass it to `PushManager.subscribe` as `applicationServerKey`.",
      responses: {
        200: {
          description: "The key",
          schema: Type.Object({
            public_key: Type.String(about("Stays the same as long as the server's secret does.",
              "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8")),
          }),
        },
      },
      handle: () => json(200, { public_key: push.publicKey }),
    }),
    keyRoute({
      ...common,
      method: "POST",
      path,
      summary: "Subscribe this browser to notifications of waiting visitors",
      description: "Send the output of `PushSubscription.toJSON`. Subscribing again is not an "
        + "error.",
      body: Type.Object({ endpoint: Endpoint, keys: Keys }),
      responses: { 201: { description: "The browser is subscribed", schema: MessageSchema } },
      handle: async ({ caller, body: { endpoint, keys } }) => {
        if (!parseHttpUrl(endpoint)) throw fieldFault("endpoint", "The endpoint is not a valid URL.");
        const { id: person } = await authorOf(caller);
        const { accountId } = caller;
        await push.subscribe({
          accountId, person, endpoint, publicKey: keys.p256dh, auth: keys.auth,
        });
        return json(201, { message: "This browser is notified" });
      },
    }),
    keyRoute({
      ...common,
      method: "DELETE",
      path,
      summary: "Unsubscribe this browser from notifications",
      body: Type.Object({ endpoint: Endpoint }),
      responses: { 200: { description: "The browser is not subscribed", schema: MessageSchema } },
      handle: async ({ caller: { accountId }, body: { endpoint } }) => {
        await push.unsubscribe({ accountId, endpoint });
        return json(200, { message: "This browser is not notified" });
      },
    }),
  ];
}
