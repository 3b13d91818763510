// Debian's Chromium with a microphone that plays a file. Tests skip where it is not installed.
import { existsSync, writeFileSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";

const EXECUTABLE = "/usr/bin/chromium";

/** Why browser tests cannot run here; false: they can. */
export const noBrowser = (): string | false =>
  existsSync(EXECUTABLE) ? false : "Debian's chromium is not installed";

const RATE = 48_000;

/** A mono WAV at the rate Chromium's fake microphone wants. */
export function writeMicrophone(file: string, samples: Int16Array): void {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(36 + samples.byteLength, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(RATE, 24);
  head.writeUInt32LE(2 * RATE, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(samples.byteLength, 40);
  const data = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  writeFileSync(file, Buffer.concat([head, data]));
}

/** `microphone`: a WAV that is played once from the moment the page opens the microphone. */
export function openBrowser(microphone: string | null): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    args: [
      "--no-sandbox",
      "--autoplay-policy=no-user-gesture-required",
      "--use-fake-device-for-media-stream",
      ...(microphone === null
        ? []
        : [
            "--use-fake-ui-for-media-stream",
            `--use-file-for-fake-audio-capture=${microphone}%noloop`,
          ]),
    ],
  });
}
