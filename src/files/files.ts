// The port for files that belong to no single process: recordings and documents. Implemented by
// folder.ts and s3.ts; opened by app/files.ts.
import type { Readable } from "node:stream";

/** Both ends are inclusive. A negative `first` counts bytes from the end. */
export interface ByteRange {
  first: number;
  last: number;
}

/** The part of a range that a file of this size has; `first` is past `last` if it has nothing. */
export const within = ({ first, last }: ByteRange, bytes: number): ByteRange =>
  ({ first: first < 0 ? Math.max(0, bytes + first) : first, last: Math.min(last, bytes - 1) });

export interface FileContent {
  /** The size of the whole file, whatever range was asked for. */
  bytes: number;
  /** The bytes of the range; empty where it begins past the end. Must be read or destroyed. */
  body: Readable;
}

/**
 * A file is there completely or not at all, even if a process dies during a put. Every method
 * throws Fault 503 while the place cannot be reached: then nothing has happened, and it can be
 * retried.
 */
export interface Files {
  /** Where the files are, as an operator reads it. */
  readonly place: string;
  /** Replaces an older file, durably once it resolves; the local file remains the caller's. */
  put(name: string, localPath: string): Promise<void>;
  /** Copies the file to a local path, complete once it resolves. False: there is no such file. */
  fetch(name: string, localPath: string): Promise<boolean>;
  /** Null: there is no such file. */
  read(name: string, range?: ByteRange): Promise<FileContent | null>;
  /** An absent file is not an error. */
  remove(name: string): Promise<void>;
  /** Drops connections. Idempotent. */
  close(): Promise<void>;
}

/** Folders of the data folder that hold files where PARLEY_FILES_URL names no other place. */
export const KEPT = ["attachments", "documents", "recordings"] as const;

/** A folder and a file name in it; neither can lead out of the place. */
const NAME = /^[a-z]+\/[\w-][\w.-]*$/;

export function assertFileName(name: string): void {
  if (!NAME.test(name)) throw new Error(`not a file name: ${name}`);
}
