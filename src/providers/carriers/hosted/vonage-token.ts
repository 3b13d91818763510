// Authenticates our requests to Vonage: a JWT signed with the application's RSA key. It is valid
// for minutes, so one is made for every request. Used by vonage-calls.ts.
import { sign } from "node:crypto";
import { rsaKeyOf, rsaKeyProblem } from "#core/keys.ts";
import type { System } from "#core/system.ts";

const VALID_S = 300;
const MICROS_PER_S = 1_000_000;

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

const HEAD = part({ typ: "JWT", alg: "RS256" });

/** Returns a maker of unique Authorization headers. Throws TypeError for an invalid key. */
export function createVonageAuthorization({ applicationId, privateKey, system }: {
  applicationId: string; privateKey: string; system: Pick<System, "now" | "uuid">;
}): () => string {
  const key = rsaKeyOf(privateKey);
  if (!key) throw new TypeError(`PARLEY_VONAGE_PRIVATE_KEY ${rsaKeyProblem(privateKey)}`);
  return () => {
    const iat = Math.floor(system.now() / MICROS_PER_S);
    const claims = { application_id: applicationId, iat, jti: system.uuid(), exp: iat + VALID_S };
    const text = `${HEAD}.${part(claims)}`;
    return `Bearer ${text}.${sign("sha256", Buffer.from(text), key).toString("base64url")}`;
  };
}
