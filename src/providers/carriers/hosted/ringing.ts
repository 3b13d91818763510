// How long telephones may ring, in the whole seconds that carriers take.

/** Until a transfer nobody picks up is given up. */
export const TRANSFER_RINGING_S = 60;

/** Within what the carrier takes. */
export const ringingSeconds = (
  ringingMs: number, { min = 1, max = Infinity }: { min?: number; max?: number } = {},
): number => Math.min(max, Math.max(min, Math.ceil(ringingMs / 1000)));
