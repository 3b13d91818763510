// A key by which the server knows a request that comes again.

/** Not randomUUID: pages of plain http have none. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");
