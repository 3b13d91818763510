// Reads multipart/form-data as it arrives: fields into memory, one file to disk, all of it counted.
// Used by http/server.ts for routes that take uploads.
import { Busboy } from "@fastify/busboy";
import { createWriteStream, type WriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { isUnsafeKey } from "#core/values.ts";
import type { MultipartForm } from "./exchange.ts";

interface MultipartOptions {
  /** Where the file is put, under a random name. */
  folder: string;
  fileBytesMax: number;
  newName(): string;
}

interface MultipartReader {
  /** Copies the chunk. */
  write(chunk: Buffer): void;
  /** Resolves once the file is on disk; rejects with a Fault when the body is malformed. */
  end(): Promise<MultipartForm>;
  /** Removes what has been stored. Idempotent. */
  abort(): void;
}

const NO_FILE = "The file field must be a file: a part of the form with a filename.";
const SEVERAL_FILES = "The form has several files: send each in a request of its own.";

const malformed = (cause: unknown): Fault =>
  new Fault(400, "The request body is not valid multipart/form-data.", { cause });

function openParser(contentType: string, fileBytesMax: number): InstanceType<typeof Busboy> {
  try {
    return new Busboy({
      headers: { "content-type": contentType } as IncomingHttpHeaders & { "content-type": string },
      limits: {
        fileSize: fileBytesMax, files: 1, fields: LIMITS.multipartFieldsMax,
        parts: LIMITS.multipartFieldsMax + 1, fieldSize: LIMITS.multipartFieldBytesMax,
        headerPairs: LIMITS.multipartHeadersMax,
      },
    });
  } catch (error) {
    throw malformed(error);
  }
}

export function createMultipartReader(
  contentType: string,
  { folder, fileBytesMax, newName }: MultipartOptions,
): MultipartReader {
  const fields: Record<string, string> = {};
  let file: MultipartForm["file"] = null;
  let failure: Fault | null = null;
  /** Why the file could not be stored; null while it can. */
  let unwritten: unknown = null;
  const written: Promise<void>[] = [];
  const targets: WriteStream[] = [];
  const fail = (cause?: unknown): void => void (failure ??= malformed(cause));

  const parser = openParser(contentType, fileBytesMax);
  parser.on("field", (name: string, value: string) => {
    if (!isUnsafeKey(name)) fields[name] = value;
  });
  parser.on("file", (name: string, stream: Readable & { truncated?: boolean }, fileName?: string) => {
    stream.on("error", fail);
    // A form whose file input is empty sends an empty part.
    if (name !== "file" || !fileName) return void stream.resume();
    const path = join(folder, newName());
    const received = { path, name: fileName, bytes: 0, tooLarge: false };
    file = received;
    stream.on("data", (chunk: Buffer) => (received.bytes += chunk.length));
    stream.on("limit", () => (received.tooLarge = true));
    // `flush`: the bytes are on disk before a row refers to them.
    const target = createWriteStream(path, { flags: "wx", mode: 0o600, flush: true });
    targets.push(target);
    written.push(finished(stream.pipe(target)).catch((error: unknown) => {
      // The rest of the file has nowhere to go, and must not block the rest of the body.
      stream.resume();
      unwritten ??= error;
    }));
  });
  parser.on("filesLimit", () => (failure ??= new Fault(400, SEVERAL_FILES)));
  for (const limit of ["fieldsLimit", "partsLimit"] as const) parser.on(limit, fail);
  const parsed = new Promise<void>((resolve) => {
    parser.on("finish", resolve);
    parser.on("error", (error: unknown) => {
      fail(error);
      resolve();
    });
  });

  const abort = (): void => {
    parser.destroy();
    for (const target of targets.splice(0)) {
      const remove = (): void => void rm(target.path, { force: true });
      // The parser leaves the file of an upload that breaks off open, which would keep its room.
      if (target.closed) remove();
      else target.once("close", remove).destroy();
    }
  };
  return {
    write: (chunk) => {
      if (!failure) parser.write(chunk);
    },
    end: async () => {
      parser.end();
      try {
        await parsed;
        await Promise.all(written);
        if (unwritten !== null) throw unwritten;
        if (failure) throw failure;
        // A text field named `file`, for example when a script appended a path instead of a file.
        if (fields.file) throw fieldFault("file", NO_FILE);
        return { fields, file };
      } catch (error) {
        abort();
        throw error;
      }
    },
    abort,
  };
}
