// SIP trunks for tests: unique request bodies, and trunks made from them.
import assert from "node:assert/strict";
import type { TestServer } from "#support/server.ts";

export const TRUNKS = "/user/phone-numbers/sip-trunks";
export const TRUNK_PASSWORD = "correct horse battery staple";

export interface WireTrunk extends Record<string, unknown> {
  id: number;
  phone_number: string;
}

let made = 0;
export function trunkBody(changes: Record<string, unknown> = {}): Record<string, unknown> {
  made += 1;
  return {
    sip_trunk_type: "number", phone_number: `+4930901820${String(10 + made)}`,
    sip_username: `user${made}`, sip_password: TRUNK_PASSWORD, sip_address: "sip.example.com",
    sip_calling_format: "+e164", inbound_authorization_type: "auth", country_code: "DE", ...changes,
  };
}

export async function newTrunk(
  server: TestServer, changes: Record<string, unknown> = {}, key = server.key,
): Promise<WireTrunk> {
  const { status, body } = await server.call("POST", TRUNKS, { key, body: trunkBody(changes) });
  assert.equal(status, 201, JSON.stringify(body));
  return body.data as WireTrunk;
}
