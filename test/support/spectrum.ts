// How much of some sound is at a frequency, in decibels: what codecs and resamplers leave of it.

/** The level of a sine of that frequency, in dB of full scale. */
export function levelAt(pcm: Int16Array, hz: number, rate: number): number {
  let [cosine, sine, weight] = [0, 0, 0];
  for (const [at, sample] of pcm.entries()) {
    // A Hann window: what is elsewhere does not leak in.
    const window = 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / pcm.length);
    const angle = (2 * Math.PI * hz * at) / rate;
    cosine += window * sample * Math.cos(angle);
    sine += window * sample * Math.sin(angle);
    weight += window;
  }
  return 20 * Math.log10(Math.max(1e-9, (2 * Math.hypot(cosine, sine)) / weight / 32_768));
}

export const sineOf = (hz: number, rate: number, seconds: number, amplitude = 8000): Int16Array =>
  Int16Array.from({ length: Math.round(rate * seconds) }, (_, at) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * hz * at) / rate)));

/** In place of a level: the loudest of a range of frequencies. */
export function loudestBetween(
  pcm: Int16Array, [fromHz, toHz]: [number, number], rate: number, stepHz = 50,
): number {
  const count = Math.floor((toHz - fromHz) / stepHz) + 1;
  return Math.max(...Array.from({ length: count }, (_, at) =>
    levelAt(pcm, fromHz + at * stepHz, rate)));
}
