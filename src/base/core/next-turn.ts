// For reads that go over much of an account: they are made in pieces, with this between them.

/** Resolves when everything else that is due has run. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
