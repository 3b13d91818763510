// Estimates a call's quality from its packet statistics: the transmission rating R of the E-model
// (ITU-T G.107) with its defaults, reduced to the two inputs measured here, loss and delay, and the
// mean opinion score derived from R. Pure. Used by reports.ts.

/** R of a telephone line without loss or delay. */
const R_BEST = 93.2;
/** Packet-loss robustness (Bpl) of G.711 with concealment, for random loss (G.113, Appendix I). */
const LOSS_ROBUSTNESS = 25.1;
/** A longer delay disturbs turn-taking. */
const DELAY_NOTICED_MS = 177.3;
const MOS_MAX = 4.5;

/**
 * Every codec is rated as G.711 on the narrowband scale: none of ours impairs more than that, and
 * the wideband ones are rated no better. `delayMs` is one way, from mouth to ear.
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
