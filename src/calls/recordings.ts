// Recordings on disk: links that are signed and expire, the route behind them, and retention. The
// files are written by the media thread, one per call, named by a uuid.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { repairWav } from "../audio/wav.ts";
import { Fault } from "../core/faults.ts";
import { LIMITS } from "../core/limits.ts";
import { about, named } from "../core/schema.ts";
import type { System } from "../core/system.ts";
import { Uuid } from "../http/answers.ts";
import type { ByteStream, Reply } from "../http/exchange.ts";
import { publicRoute, type Route } from "../http/route.ts";

export interface Recordings {
  readonly folder: string;
  /** Path and query of a link that works for `recordingLinkMs`. */
  linkOf(file: string): string;
  /** After a crash. False: nothing was recorded, and the file is gone. */
  repair(file: string): Promise<boolean>;
  /** Absent files are no error. */
  remove(file: string): Promise<void>;
  route: Route;
}

const CONTENT_TYPE = "audio/wav";
const SOUND = Type.String(named("Recording", "Sound as WAV: 16-bit PCM, stereo.", "RIFF…"));
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
    route: publicRoute({
      tag: "Calls",
      errorShape: "message",
      method: "GET",
      path: "/recordings/{uuid}",
      notFound: "Recording not found",
      summary: "Hear a recording",
      description: "The link is `recording_url` of the call; parts of it can be asked for by Range.",
      params: { uuid: Uuid("The recording, as the link names it.") },
      query: Type.Object({
        expires: Type.String(about("Until when the link is good, in Unix seconds.", "1772530200")),
        signature: Type.String(about("Of the server, over the rest of the link.", "9c56cc51b374")),
      }),
      responses: {
        200: {
          description: "Stereo WAV: customer left, assistant right",
          schema: SOUND, contentType: CONTENT_TYPE,
        },
        206: {
          description: "The range asked for, or its beginning",
          schema: SOUND, contentType: CONTENT_TYPE,
        },
        404: { description: "No such recording, or the link has expired" },
        416: { description: "The range is past the end", schema: SOUND, contentType: CONTENT_TYPE },
      },
      handle: async ({ uuid, query, http }) => {
        if (!isSigned(uuid, query.expires, query.signature)) throw new Fault(404, "Recording not found");
        return serve(join(folder, uuid + SUFFIX), http.headers.range);
      },
    }),
  };
}

/** A slice with its length for players that seek, the whole in pieces for everybody else. */
async function serve(path: string, range: string | undefined): Promise<Reply> {
  const bytes = await stat(path).then(({ size }) => size, () => {
    throw new Fault(404, "Recording not found");
  });
  const headers = { "Accept-Ranges": "bytes", "Cache-Control": "private, no-store" };
  const asked = /^bytes=(\d{1,15})-(\d{1,15})?$/.exec(range ?? "");
  if (!asked && bytes > LIMITS.recordingSliceBytesMax) {
    return {
      status: 200, headers, contentType: CONTENT_TYPE, stream: (stream) => pour(path, stream),
    };
  }
  const first = Number(asked?.[1] ?? 0);
  const last = Math.min(
    Number(asked?.[2] ?? bytes - 1), bytes - 1, first + LIMITS.recordingSliceBytesMax - 1);
  if (first > last) {
    return {
      status: 416, headers: { "Content-Range": `bytes */${bytes}` }, contentType: CONTENT_TYPE, content: "",
    };
  }
  const content = await slice(path, first, last - first + 1);
  return asked
    ? {
        status: 206,
        headers: { ...headers, "Content-Range": `bytes ${first}-${last}/${bytes}` },
        contentType: CONTENT_TYPE,
        content,
      }
    : { status: 200, headers, contentType: CONTENT_TYPE, content };
}

async function slice(path: string, position: number, length: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

function pour(path: string, stream: ByteStream): void {
  const file = createReadStream(path, { highWaterMark: LIMITS.socketBufferBytesMax });
  file.on("data", (chunk) => {
    if (!stream.write(chunk)) file.pause();
  });
  file.on("end", () => stream.end());
  // The head is out: only a broken connection can say that the rest is missing.
  file.on("error", () => stream.abort());
  stream.onDrain(() => file.resume());
  stream.onClose(() => file.destroy());
}
