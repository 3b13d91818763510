// The port behind which files lie that belong to no process: recordings and documents. Implemented
// by folder.ts and s3.ts; opened by app/files.ts.
import type { Readable } from "node:stream";

/** Both ends count. A negative first is so many bytes before the end. */
export interface ByteRange {
  first: number;
  last: number;
}

/** What a file of so many bytes has of a range; `first` is past `last` where it has nothing. */
export const within = ({ first, last }: ByteRange, bytes: number): ByteRange =>
  ({ first: first < 0 ? Math.max(0, bytes + first) : first, last: Math.min(last, bytes - 1) });

export interface FileContent {
  /** The whole file's, whatever was asked for. */
  bytes: number;
  /** What the range has of it; nothing where it begins past the end. Read it or destroy it. */
  body: Readable;
}

/**
 * A file is there whole or not at all, whoever dies meanwhile. Every method throws Fault 503 while
 * the place cannot be reached: nothing has happened then, and the same may be asked again.
 */
export interface Files {
  /** Where they lie, as an operator reads it. */
  readonly place: string;
  /** Durable once it resolves, in place of an older one; the local file stays the caller's. */
  put(name: string, localPath: string): Promise<void>;
  /** A copy of the caller's own, whole once it resolves. False: there is no such file. */
  fetch(name: string, localPath: string): Promise<boolean>;
  /** Null: there is no such file. */
  read(name: string, range?: ByteRange): Promise<FileContent | null>;
  /** An absent file is no error. */
  remove(name: string): Promise<void>;
  /** Drops connections. Idempotent. */
  close(): Promise<void>;
}

/** Folders of the data folder that hold files where PARLEY_FILES_URL names no other place. */
export const KEPT = ["attachments", "documents", "recordings"] as const;

/** A folder and a name in it, neither of which leads anywhere else. */
const NAME = /^[a-z]+\/[\w-][\w.-]*$/;

export function assertFileName(name: string): void {
  if (!NAME.test(name)) throw new Error(`no name of a file: ${name}`);
}
