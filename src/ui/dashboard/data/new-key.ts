// A key by which the server knows a request that comes again.

/** Not randomUUID: pages of plain http have none. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
