// An idempotency key, by which the server recognizes a request that is sent again.

/** Not randomUUID: pages of plain http have none. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** What was sent under a key, and may be sent again. */
export interface Pending {
  key: string;
  /** As JSON. */
  message: string;
}

/** The same key for the same message, as when an answer was lost; otherwise a new key. */
export const pendingOf = (tried: Pending | null, message: string): Pending =>
  tried?.message === message ? tried : { key: newKey(), message };
