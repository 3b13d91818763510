// Resolves names with the system's resolver, and orders SRV records (RFC 2782, RFC 3263 4.2): by
// priority, then at random by weight. Opened by sip.ts for trunk-roster.ts.
import { createHash } from "node:crypto";
import { lookup, resolveSrv } from "node:dns/promises";
import type { System } from "#core/system.ts";
import type { Names } from "./trunk-roster.ts";

export interface SrvRecord {
  name: string;
  port: number;
  priority: number;
  weight: number;
}

const SEED_BYTES = 16;
/** Weight 0 is a very small chance, not none. */
const LEAST_WEIGHT = 0.1;

export function createSystemNames(system: System): Names {
  const seed = system.randomBytes(SEED_BYTES);
  return {
    addresses: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    services: async (name) => inOrder(await resolveSrv(name).catch(() => []), seed),
  };
}

/**
 * Best first. The random order depends only on the seed and the records, so that resolving again
 * does not move a registration, while a changed weight or priority still has its effect: each
 * record gets an exponential waiting time with its weight as rate, and the shortest comes first,
 * which has the distribution of RFC 2782.
 */
export function inOrder(records: readonly SrvRecord[], seed: Uint8Array): SrvRecord[] {
  const waits = new Map(records.map((record) => [record, waitOf(record, seed)]));
  return records.toSorted((one, other) =>
    one.priority - other.priority || (waits.get(one) ?? 0) - (waits.get(other) ?? 0));
}

function waitOf({ name, port, weight }: SrvRecord, seed: Uint8Array): number {
  const drawn = createHash("sha256").update(seed).update(`${name}:${port}`).digest();
  // Above 0 and at most 1.
  const chance = (drawn.readUInt32BE() + 1) / 2 ** 32;
  return -Math.log(chance) / Math.max(weight, LEAST_WEIGHT);
}
