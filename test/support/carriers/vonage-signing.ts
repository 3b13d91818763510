// What Vonage signs with: the JWT it puts into the Authorization header of webhooks and, where the
// document asks for it, of the opening of a WebSocket, as "Decoding signed webhooks" describes it.
import { createHash, createHmac, randomUUID } from "node:crypto";

export const VONAGE_APPLICATION = "aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab";
export const VONAGE_SECRET = "a signature secret of the account, 32 characters or more";

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** `body` is null for the opening of a WebSocket, which has none and so no hash. */
export function vonageBearer(body: string | null, secret = VONAGE_SECRET): string {
  const claims = {
    iat: Math.floor(Date.now() / 1000), jti: randomUUID(), iss: "Vonage", api_key: "abcd1234",
    application_id: VONAGE_APPLICATION,
    ...(body === null ? {} : { payload_hash: createHash("sha256").update(body).digest("hex") }),
  };
  const text = `${part({ typ: "JWT", alg: "HS256" })}.${part(claims)}`;
  return `Bearer ${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}
