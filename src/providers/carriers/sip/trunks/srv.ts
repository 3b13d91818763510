// Names as the system resolves them, and the order of SRV records (RFC 2782, RFC 3263 4.2): by
// priority, and within one by chance that the weights bend. Opened by sip.ts for trunk-roster.ts.
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
 * Best first. Chance comes from the seed and the record alone, so that asking again does not move
 * a registration, while a weight or priority that was changed still tells: for each record a
 * waiting time with its weight as rate, the shortest first, which draws as RFC 2782 does.
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
