// Adding sounds, and joining them. Pure.

/** Adds `source` times `gain` to `target`; what is too loud is clipped. Lengths may differ. */
export function mixInto(target: Int16Array, source: Int16Array, gain: number): void {
  const length = Math.min(target.length, source.length);
  for (let at = 0; at < length; at += 1) {
    const sum = (target[at] ?? 0) + (source[at] ?? 0) * gain;
    target[at] = sum > 32_767 ? 32_767 : sum < -32_768 ? -32_768 : sum;
  }
}

export function joined(pieces: readonly Int16Array[]): Int16Array<ArrayBuffer> {
  const whole = new Int16Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
