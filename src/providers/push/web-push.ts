// Web Push as every browser has it: an encrypted message to the address that the browser gave, sent
// under the guard for addresses from outside. Called by app/push.ts.
import type { Instant, System } from "#core/system.ts";
import type { Outbound, OutboundReply } from "#outbound/request.ts";
import { retryAfterMs } from "#outbound/retry-after.ts";
import { mayNotBeCalled } from "#outbound/unreachable.ts";
import { encrypt, keyPairFrom, newKeyPair, vapidHeader } from "./encryption.ts";
import type { PushOutcome, Pusher } from "./port.ts";

interface WebPushOptions {
  outbound: Outbound;
  /** The keys are made from it: another secret ends every subscription. */
  secret: string;
  /** Where push services can reach the server's operator; null: nowhere. */
  contact: string | null;
  system: System;
}

const TOTAL_MS = 10_000;
const RESPONSE_BYTES_MAX = 16 * 1024;
/** How long a push service keeps a message; by then, who waits has been seen in the inbox. */
const KEPT_S = 60 * 60;
const SIGNED_FOR_S = 12 * 60 * 60;
const RETRY_AFTER_S_MAX = 600;
const SALT_BYTES = 16;

const failed = (error: string, retryable: boolean, retryAfterS = 0): PushOutcome =>
  ({ kind: "failed", error, retryable, retryAfterS });

function outcomeOf(reply: OutboundReply, now: Instant): PushOutcome {
  if (reply.kind === "refused") return failed(mayNotBeCalled("the push service", reply.reason), false);
  if (reply.kind === "failed") return failed(`the push service: ${reply.reason}`, true);
  const { status, headers } = reply;
  if (status >= 200 && status < 300) return { kind: "taken" };
  if (status === 404 || status === 410) return { kind: "gone" };
  const askedMs = retryAfterMs(headers["retry-after"] ?? "", now / 1000) ?? 0;
  const retryAfterS = Math.min(askedMs / 1000, RETRY_AFTER_S_MAX);
  return failed(
    `the push service answered ${status}`, status === 429 || status >= 500, retryAfterS);
}

export function createWebPush({ outbound, secret, contact, system }: WebPushOptions): Pusher {
  const keys = keyPairFrom(secret);
  return {
    publicKey: keys.getPublicKey("base64url"),
    send: async (target, { text, topic }) => {
      let body: Buffer;
      try {
        body = encrypt(text, target, newKeyPair(), system.randomBytes(SALT_BYTES));
      } catch (error) {
        return failed(String(error), false);
      }
      const authorization = vapidHeader(keys, {
        aud: new URL(target.endpoint).origin,
        exp: Math.floor(system.now() / 1_000_000) + SIGNED_FOR_S,
        ...contact === null ? {} : { sub: contact },
      });
      return outcomeOf(await outbound.request({
        url: target.endpoint,
        method: "POST",
        headers: {
          authorization, topic,
          "content-type": "application/octet-stream", "content-encoding": "aes128gcm",
          ttl: String(KEPT_S), urgency: "high",
        },
        body,
        totalMs: TOTAL_MS,
        bytesMax: RESPONSE_BYTES_MAX,
      }), system.now());
    },
    close: () => outbound.close(),
  };
}
