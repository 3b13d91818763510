// Recordings on disk: links that are signed and expire, and what is done to the files. The media
// thread writes them, one per call, named by a uuid; recording-routes.ts plays them.
import { createHmac, timingSafeEqual } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { repairWav } from "#audio/wav.ts";
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { Call } from "./records.ts";

export interface Recordings {
  readonly folder: string;
  /** A link that works for `recordingLinkMs`; `apiUrl`: the API as its reader reaches it. */
  linkOf(file: string, apiUrl: string): string;
  /** The link of a call's recording; null: there is none, or not yet. */
  urlOf(call: Pick<Call, "recordingFile" | "endedAt">, apiUrl: string): string | null;
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
  const linkOf = (file: string, apiUrl: string): string => {
    const uuid = file.slice(0, -SUFFIX.length);
    const expires = String(Math.floor(system.now() / 1_000_000 + LIMITS.recordingLinkMs / 1000));
    const signature = sign(uuid, expires).toString("base64url");
    return `${apiUrl}/recordings/${uuid}?expires=${expires}&signature=${signature}`;
  };
  return {
    folder,
    linkOf,
    urlOf: ({ recordingFile, endedAt }, apiUrl) =>
      (recordingFile === null || endedAt === null ? null : linkOf(recordingFile, apiUrl)),
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
