// How good a conversation is by the numbers of its packets: the transmission rating R of the
// E-model (ITU-T G.107) with its defaults, simplified to what is measured here, loss and delay, and
// the mean opinion score that follows from it. Pure. Used by reports.ts.

/** R of a telephone line without loss or delay. */
const R_BEST = 93.2;
/** G.711 whose losses are concealed stands so much random loss (G.113, Appendix I). */
const LOSS_ROBUSTNESS = 25.1;
/** Longer delay disturbs the taking of turns. */
const DELAY_NOTICED_MS = 177.3;
const MOS_MAX = 4.5;

/**
 * All our codecs stand on the telephone's scale, as G.711: none of them impairs more, and the wide
 * ones are rated no better. `delayMs`: one way, from mouth to ear.
 */
export function rFactorOf({ lossPercent, delayMs }: {
  lossPercent: number; delayMs: number;
}): number {
  const delay = 0.024 * delayMs + 0.11 * Math.max(0, delayMs - DELAY_NOTICED_MS);
  const loss = (95 * lossPercent) / (lossPercent + LOSS_ROBUSTNESS);
  return Math.max(0, R_BEST - delay - loss);
}

/** G.107, Annex B: from 1 to 4.5. */
export function mosOf(r: number): number {
  if (r <= 0) return 1;
  if (r >= 100) return MOS_MAX;
  return Math.max(1, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6);
}
