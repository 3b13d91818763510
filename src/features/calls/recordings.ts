// Recordings on disk: links that are signed and expire, and what is done to the files. The media
// thread writes them, one per call, named by a uuid; recording-routes.ts plays them.
import { createHmac, timingSafeEqual } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { repairWav } from "#audio/wav.ts";
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";

export interface Recordings {
  readonly folder: string;
  /** Path and query of a link that works for `recordingLinkMs`. */
  linkOf(file: string): string;
  /** After a crash. False: nothing was recorded, and the file is gone. */
  repair(file: string): Promise<boolean>;
  /** Absent files are no error. */
  remove(file: string): Promise<void>;
  /** Where the file of a link is, whether or not it is still there; null: the link is not good. */
  pathOf(uuid: string, link: { expires: string; signature: string }): string | null;
}

const SUFFIX = ".wav";

export function createRecordings(
  { folder, secret, system }: { folder: string; secret: string; system: System },
): Recordings {
  const sign = (uuid: string, expires: string): Buffer =>
    createHmac("sha256", secret).update(`recording:${uuid}:${expires}`).digest();
  const isSigned = (uuid: string, expires: string, signature: string): boolean => {
    const given = Buffer.from(signature, "base64url");
    const right = sign(uuid, expires);
    return given.length === right.length && timingSafeEqual(given, right)
      && Number(expires) * 1_000_000 > system.now();
  };
  return {
    folder,
    linkOf: (file) => {
      const uuid = file.slice(0, -SUFFIX.length);
      const expires = String(Math.floor(system.now() / 1_000_000 + LIMITS.recordingLinkMs / 1000));
      const signature = sign(uuid, expires).toString("base64url");
      return `/recordings/${uuid}?expires=${expires}&signature=${signature}`;
    },
    repair: async (file) => {
      const hasSound = await repairWav(join(folder, file));
      if (!hasSound) await rm(join(folder, file), { force: true });
      return hasSound;
    },
    remove: (file) => rm(join(folder, file), { force: true }),
    pathOf: (uuid, { expires, signature }) =>
      isSigned(uuid, expires, signature) ? join(folder, uuid + SUFFIX) : null,
  };
}
