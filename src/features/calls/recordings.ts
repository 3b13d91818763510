// Recordings on disk: links that are signed and expire, and what is done to the files. The media
// thread writes them as WAV, one per call, named by a uuid; where Opus is wanted, a thread makes it
// of them after the call. recording-routes.ts plays them.
import { createHmac, timingSafeEqual } from "node:crypto";
import { access, rm } from "node:fs/promises";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { repairWav } from "#audio/wav.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
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
  /** After a call: makes Opus of the WAV where that is wanted, one after the other. */
  compress(file: string): void;
  /** Where the sound of a link is; null: the link is not good, or the sound is gone. */
  find(uuid: string, link: { expires: string; signature: string }): Promise<RecordingFile | null>;
  /** Gives up what is being compressed: its WAV is still there. */
  close(): Promise<void>;
}

interface RecordingFile {
  path: string;
  contentType: "audio/wav" | "audio/ogg";
}

export interface CompressionTask {
  /** A WAV, removed once `to` is whole. */
  from: string;
  to: string;
}

interface RecordingOptions {
  folder: string;
  secret: string;
  format: "wav" | "opus";
  system: System;
  log: Logger;
}

const COMPRESSOR = workerFile("compress-recording");
const SUFFIX = ".wav";
const KINDS = [[".ogg", "audio/ogg"], [SUFFIX, "audio/wav"]] as const;

export function createRecordings(
  { folder, secret, format, system, log }: RecordingOptions,
): Recordings {
  const compressor = createCompressor(log);
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
    remove: async (file) => {
      const path = join(folder, file.slice(0, -SUFFIX.length));
      for (const suffix of [SUFFIX, ".ogg", ".ogg.part"]) await rm(path + suffix, { force: true });
    },
    compress: (file) => {
      const path = join(folder, file);
      if (format === "opus") compressor.add({ from: path, to: `${path.slice(0, -SUFFIX.length)}.ogg` });
    },
    find: async (uuid, { expires, signature }) => {
      if (!isSigned(uuid, expires, signature)) return null;
      for (const [suffix, contentType] of KINDS) {
        const path = join(folder, uuid + suffix);
        if (await access(path).then(() => true, () => false)) return { path, contentType };
      }
      return null;
    },
    close: compressor.close,
  };
}

/** One at a time: nobody waits for it. */
function createCompressor(log: Logger) {
  const waiting: CompressionTask[] = [];
  let running: Worker | null = null;
  const next = (): void => {
    const task = waiting.shift();
    if (!task) return;
    running = new Worker(COMPRESSOR, { workerData: task });
    running.unref();
    running.on("error", (error) => log.error({ err: error }, "a recording could not be compressed"));
    running.on("exit", () => {
      running = null;
      next();
    });
  };
  return {
    add: (task: CompressionTask): void => {
      waiting.push(task);
      if (!running) next();
    },
    close: async (): Promise<void> => {
      waiting.length = 0;
      await running?.terminate();
    },
  };
}
