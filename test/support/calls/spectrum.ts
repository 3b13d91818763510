// How much of some sound is at a frequency, in decibels: what codecs and resamplers leave of it.

/** The level of a sine of that frequency, in dB of full scale. */
export function levelAt(pcm: Int16Array, hz: number, rate: number): number {
  let [cosine, sine, weight] = [0, 0, 0];
  // Both rotate by an angle per sample, which costs a tenth of computing the sine.
  const angle = (2 * Math.PI * hz) / rate;
  const [toneX, toneY] = [Math.cos(angle), Math.sin(angle)];
  const turn = (2 * Math.PI) / pcm.length;
  const [windowX, windowY] = [Math.cos(turn), Math.sin(turn)];
  let [x, y, hannX, hannY] = [1, 0, 1, 0];
  for (let at = 0; at < pcm.length; at += 1) {
    // A Hann window keeps other frequencies from leaking in.
    const window = 0.5 - 0.5 * hannX;
    const value = window * pcm[at]!;
    cosine += value * x;
    sine += value * y;
    weight += window;
    const nextX = x * toneX - y * toneY;
    const nextHann = hannX * windowX - hannY * windowY;
    y = y * toneX + x * toneY;
    hannY = hannY * windowX + hannX * windowY;
    x = nextX;
    hannX = nextHann;
  }
  return 20 * Math.log10(Math.max(1e-9, (2 * Math.hypot(cosine, sine)) / weight / 32_768));
}

export const sineOf = (hz: number, rate: number, seconds: number, amplitude = 8000): Int16Array =>
  Int16Array.from({ length: Math.round(rate * seconds) }, (_, at) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * hz * at) / rate)));

/** The loudest level within a range of frequencies. */
export function loudestBetween(
  pcm: Int16Array, [fromHz, toHz]: [number, number], rate: number, stepHz = 50,
): number {
  const count = Math.floor((toHz - fromHz) / stepHz) + 1;
  return Math.max(...Array.from({ length: count }, (_, at) =>
    levelAt(pcm, fromHz + at * stepHz, rate)));
}
