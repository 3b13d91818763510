// Passwords: scrypt off the main thread, a few at a time, its parameters kept with each hash. Made
// in app/people.ts, called by sign-in.ts.
import { scrypt, timingSafeEqual, type ScryptOptions } from "node:crypto";
import { Fault } from "#core/faults.ts";
import type { System } from "#core/system.ts";

export const PASSWORD_CHARS_MIN = 10;
export const PASSWORD_CHARS_MAX = 256;

export interface Passwords {
  hash(password: string): Promise<string>;
  /** Without a stored hash it takes as long and is false. Throws Fault 503 when too many wait. */
  verify(password: string, stored: string | null): Promise<boolean>;
}

export interface PasswordCost {
  N: number;
  r: number;
  p: number;
}

/** 32 MB and about a quarter of a second of one core. */
const SHIPPED: PasswordCost = { N: 2 ** 15, r: 8, p: 3 };
/** The most memory that a stored hash's parameters may require. */
const MEMORY_BYTES_MAX = 256 * 1024 * 1024;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
/** Each takes 32 MB and a thread of the libuv pool, which also reads files. */
const AT_ONCE_MAX = 2;
const WAITING_MAX = 32;

const derive = (password: string, salt: Buffer, cost: PasswordCost): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const options: ScryptOptions = { ...cost, maxmem: MEMORY_BYTES_MAX };
    // Normalised, so that the same letters match however a keyboard composes them.
    scrypt(password.normalize("NFKC"), salt, KEY_BYTES, options, (error, key) =>
      error ? reject(error) : resolve(key));
  });

const written = ({ N, r, p }: PasswordCost, salt: Buffer, key: Buffer): string =>
  ["scrypt", N, r, p, salt.toString("base64url"), key.toString("base64url")].join("$");

function read(stored: string): { cost: PasswordCost; salt: Buffer; key: Buffer } | null {
  const match = /^scrypt\$(\d+)\$(\d+)\$(\d+)\$([\w-]+)\$([\w-]+)$/.exec(stored);
  if (!match) return null;
  const [N = 0, r = 0, p = 0] = match.slice(1, 4).map(Number);
  return {
    cost: { N, r, p }, salt: Buffer.from(match[4] ?? "", "base64url"),
    key: Buffer.from(match[5] ?? "", "base64url"),
  };
}

interface PasswordOptions {
  system: System;
  /** The scrypt parameters of new hashes. */
  cost?: PasswordCost | undefined;
}

export function createPasswords({ system, cost: own = SHIPPED }: PasswordOptions): Passwords {
  let running = 0;
  const waiting: (() => void)[] = [];
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= AT_ONCE_MAX) {
      if (waiting.length >= WAITING_MAX) {
        throw new Fault(
          503, "Too many people are signing in right now. Please try again.", { retryAfterS: 2 });
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
  const nobody = { cost: own, salt: system.randomBytes(SALT_BYTES), key: Buffer.alloc(KEY_BYTES) };
  return {
    hash: async (password) => {
      const salt = system.randomBytes(SALT_BYTES);
      return written(own, salt, await inTurn(() => derive(password, salt, own)));
    },
    verify: async (password, stored) => {
      const known = stored === null ? null : read(stored);
      const { cost, salt, key } = known ?? nobody;
      const given = await inTurn(() => derive(password, salt, cost));
      return timingSafeEqual(given, key) && known !== null;
    },
  };
}
