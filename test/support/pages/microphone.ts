// A microphone that says a line in the embedded voice, as a file for Chromium's fake device.
import { createResampler } from "#audio/resampler.ts";
import { createLogger } from "#core/logger.ts";
import { createEmbeddedVoices } from "#providers/speech/embedded/embedded-voices.ts";
import { writeMicrophone } from "./browser.ts";

const VOICE = {
  rate: 16_000, voice: "rms", gender: "male", language: "en", speed: 1, stability: 1, similarity: 1,
  hasEmotion: false,
} as const;

/** The line at 16 kHz. */
export async function speak(text: string): Promise<Int16Array> {
  const voices = createEmbeddedVoices(createLogger("silent"));
  const done = Promise.withResolvers<void>();
  const samples: number[] = [];
  const stream = voices.flite.open(VOICE, (event) => {
    if (event.kind === "audio") samples.push(...event.pcm);
    if (event.kind === "failed") done.reject(event.error);
    if (event.kind === "done") done.resolve();
  });
  stream.write(text);
  stream.end();
  // The voices' thread does not keep a process alive by itself.
  const alive = setInterval(() => undefined, 1000);
  await done.promise.finally(() => clearInterval(alive));
  await voices.close();
  return Int16Array.from(samples);
}

/** Writes the line at 48 kHz, once at each of these seconds, then half a minute's silence. */
export async function microphoneOf(
  file: string, text: string, atSeconds: number[],
): Promise<{ file: string }> {
  // It is spoken once: loading the voice costs more than saying the line.
  const line = createResampler(16_000, 48_000).process(await speak(text));
  const sound = new Int16Array(48_000 * (Math.max(...atSeconds) + 30) + line.length);
  for (const seconds of atSeconds) sound.set(line, 48_000 * seconds);
  writeMicrophone(file, sound);
  return { file };
}
