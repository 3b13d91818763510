// A short sound for a message that came while nobody was looking. It is synthesised, not loaded.

const TONES_HZ = [660, 880];
const TONE_S = 0.12;
const LOUDNESS = 0.08;

let context: AudioContext | null = null;

/** Silent if the browser allows no sound before a click or a key. */
export function chime(): void {
  context ??= new AudioContext();
  const { currentTime: now, destination } = context;
  if (context.state !== "running") return void context.resume().catch(() => undefined);
  const gain = context.createGain();
  gain.gain.value = LOUDNESS;
  gain.connect(destination);
  let start = now;
  for (const frequency of TONES_HZ) {
    const tone = context.createOscillator();
    tone.frequency.value = frequency;
    tone.connect(gain);
    tone.start(start);
    start += TONE_S;
    tone.stop(start);
  }
}
