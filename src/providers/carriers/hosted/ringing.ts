// How long telephones may ring, in the whole seconds that carriers take.

/** How long a transfer rings before it fails. */
export const TRANSFER_RINGING_S = 60;

/** Rounded up to seconds, within the range that the carrier accepts. */
export const ringingSeconds = (
  ringingMs: number, { min = 1, max = Infinity }: { min?: number; max?: number } = {},
): number => Math.min(max, Math.max(min, Math.ceil(ringingMs / 1000)));
