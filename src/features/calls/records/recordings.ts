// Recordings: links that are signed and expire, and where the files are kept. The media thread
// writes them as WAV into this server's scratch folder: one per call, named by a uuid, and one per
// leg to a colleague, named after it. After the call they are moved to where all nodes reach them,
// as Opus if configured; until then they are played from scratch. recording-routes.ts plays them.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readdirSync } from "node:fs";
import { access, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { repairWav } from "#audio/wav.ts";
import type { ByteRange, FileContent, Files } from "#files/files.ts";
import type { Removals } from "#files/removals.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { createCompressor } from "./compression.ts";
import { placesOf } from "./transfers.ts";

export interface Recordings {
  /** Where the media thread writes. */
  readonly folder: string;
  /** A link that works for `recordingLinkMs`; `apiUrl`: the API as its reader reaches it. */
  linkOf(file: string, apiUrl: string): string;
  /**
   * Repairs one that could not be closed. False: nothing was recorded, and the file is gone. True
   * also where that cannot be seen. Never rejects.
   */
  repair(file: string): Promise<boolean>;
  /**
   * Repairs one after a crash, wherever it is; `takeUp` moves it to its place. True also for one
   * that cannot be reached, since it may have sound. Never rejects.
   */
  mend(file: string): Promise<boolean>;
  /**
   * After a call: puts it where every node reads it. Resolves once that is done or has failed, and
   * never rejects: one that failed waits in scratch for `retry`.
   */
  keep(file: string): Promise<void>;
  /** Keeps what an earlier process left in scratch; to be called before the first call. */
  takeUp(): Promise<void>;
  retry(): Promise<void>;
  /** Absent files are no error; never rejects. */
  remove(file: string): Promise<void>;
  /** The sound of a link; null: the link is not valid, or the sound is gone. */
  read(
    uuid: string, link: { expires: string; signature: string; leg?: number }, range?: ByteRange,
  ): Promise<Sound | null>;
  /** Aborts the compression under way: the WAV is still there. */
  close(): Promise<void>;
}

export interface Sound extends FileContent {
  contentType: "audio/wav" | "audio/ogg";
}

interface RecordingOptions {
  files: Files;
  /** Reads files below the data folder. */
  local: Pick<Files, "read">;
  /** The scratch folder in the data folder. */
  folder: string;
  removals: Pick<Removals, "remove" | "removeTwice">;
  secret: string;
  format: "wav" | "opus";
  /** A recording that is neither here nor in its place may be in another node's scratch. */
  mayBeElsewhere: boolean;
  /** False: no call has this recording any more. */
  isNamed(file: string): Promise<boolean>;
  system: System;
  log: Logger;
}

const SUFFIX = ".wav";
const UUID_CHARS = 36;
const KINDS = [[SUFFIX, "audio/wav"], [".ogg", "audio/ogg"]] as const;

const nameOf = (file: string): string => `recordings/${file}`;
const opusOf = (file: string): string => `${file.slice(0, -SUFFIX.length)}.ogg`;
const isThere = (path: string): Promise<boolean> => access(path).then(() => true, () => false);

function createLinks({ secret, system }: RecordingOptions) {
  const sign = (name: string, expires: string): Buffer =>
    createHmac("sha256", secret).update(`recording:${name}:${expires}`).digest();
  return {
    isSigned: (name: string, expires: string, signature: string): boolean => {
      const given = Buffer.from(signature, "base64url");
      const right = sign(name, expires);
      return given.length === right.length && timingSafeEqual(given, right)
        && Number(expires) * 1_000_000 > system.now();
    },
    linkOf: (file: string, apiUrl: string): string => {
      const name = file.slice(0, -SUFFIX.length);
      const uuid = name.slice(0, UUID_CHARS);
      const leg = name === uuid ? "" : `leg=${name.slice(UUID_CHARS + 1)}&`;
      const expires = String(Math.floor(system.now() / 1_000_000 + LIMITS.recordingLinkMs / 1000));
      const signature = sign(name, expires).toString("base64url");
      return `${apiUrl}/recordings/${uuid}?${leg}expires=${expires}&signature=${signature}`;
    },
  };
}

/** Moves finished recordings from scratch to their place. */
function createKeeper(options: RecordingOptions) {
  const { files, folder, removals, format, isNamed, log } = options;
  const waiting = new Set<string>();
  const put = async (file: string, kept = file): Promise<void> => {
    await files.put(nameOf(kept), join(folder, kept));
    // Any node may delete a call while its recording is being put or waits.
    if (!await isNamed(file)) await removals.remove(nameOf(kept));
  };
  const leave = async (file: string): Promise<void> => {
    for (const name of [`${opusOf(file)}.part`, opusOf(file), file]) {
      await rm(join(folder, name), { force: true });
    }
  };
  const attempt = async (file: string, work: () => Promise<void>): Promise<void> => {
    waiting.delete(file);
    try {
      await work();
    } catch (error) {
      if (!await isThere(join(folder, file))) return;
      waiting.add(file);
      log.warn({ err: error, recording: file }, "could not store a recording; it stays in the data folder for now");
    }
  };
  const compressor = createCompressor(log, (file) => attempt(file, async () => {
    // The thread has failed, or the call was deleted meanwhile.
    if (!await isThere(join(folder, opusOf(file)))) return;
    await put(file, opusOf(file));
    await files.remove(nameOf(file));
    await leave(file);
  }));
  const keep = (file: string): Promise<void> => attempt(file, async () => {
    const path = join(folder, file);
    const isHere = await isThere(path);
    if (isHere) await put(file);
    if (format === "wav") return leave(file);
    // A file that is in its place already may still have to be compressed.
    if (isHere || await files.fetch(nameOf(file), path)) {
      compressor.add(file, { from: path, to: join(folder, opusOf(file)) });
    }
  });
  return { keep, leave, waiting, close: compressor.close };
}

export function createRecordings(options: RecordingOptions): Recordings {
  const { files, local, folder, removals, format, log } = options;
  const { isSigned, linkOf } = createLinks(options);
  const keeper = createKeeper(options);
  const kinds = format === "wav" ? KINDS : KINDS.toReversed();
  const repairHere = async (file: string): Promise<boolean> => {
    const hasSound = await repairWav(join(folder, file));
    if (!hasSound) await keeper.leave(file);
    return hasSound;
  };
  /** Null: it cannot be seen whether it has sound, so it is left as it is. */
  const attempt = async (file: string, work = repairHere): Promise<boolean | null> => {
    try {
      return await work(file);
    } catch (error) {
      log.warn({ err: error, recording: file }, "could not repair an incomplete recording");
      return null;
    }
  };
  const repairAnywhere = async (file: string): Promise<boolean> => {
    const path = join(folder, file);
    if (await isThere(path) || await files.fetch(nameOf(file), path)) return repairHere(file);
    return options.mayBeElsewhere;
  };
  return {
    folder,
    linkOf,
    repair: async (file) => await attempt(file) ?? true,
    mend: async (file) => await attempt(file, repairAnywhere) ?? true,
    keep: keeper.keep,
    takeUp: async () => {
      // Listed synchronously: files that come later belong to calls in progress.
      const left = readdirSync(folder).filter((name) => name.endsWith(SUFFIX));
      for (const file of left) if (await attempt(file)) await keeper.keep(file);
    },
    retry: async () => {
      for (const file of [...keeper.waiting]) {
        await keeper.keep(file);
        // The place is still out of reach: the others would only wait as long and fail too.
        if (keeper.waiting.has(file)) return;
      }
    },
    remove: async (file) => {
      await keeper.leave(file);
      // The node that puts the file may die before it checks `isNamed`, or be told of a failure
      // although the put succeeded.
      await removals.removeTwice(...placesOf(file));
    },
    read: async (uuid, { expires, signature, leg }, range) => {
      const name = leg === undefined ? uuid : `${uuid}-${leg}`;
      if (!isSigned(name, expires, signature)) return null;
      const here = await local.read(`${basename(folder)}/${name}${SUFFIX}`, range);
      if (here) return { ...here, contentType: "audio/wav" };
      for (const [suffix, contentType] of kinds) {
        const found = await files.read(nameOf(name + suffix), range);
        if (found) return { ...found, contentType };
      }
      return null;
    },
    close: keeper.close,
  };
}
