// Plays recordings to whoever has a link: the whole, or the ranges players ask for.
import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { Type } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named } from "#core/schema.ts";
import { Uuid } from "#http/answers.ts";
import type { ByteStream, Reply } from "#http/exchange.ts";
import { publicRoute, type Route } from "#http/route.ts";
import type { Recordings } from "./recordings.ts";

const CONTENT_TYPE = "audio/wav";
const SOUND = Type.String(named("Recording", "Sound as WAV: 16-bit PCM, stereo.", "RIFF…"));

export function recordingRoutes(recordings: Pick<Recordings, "pathOf">): Route[] {
  return [publicRoute({
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
      const path = recordings.pathOf(uuid, query);
      if (path === null) throw new Fault(404, "Recording not found");
      return serve(path, http.headers.range);
    },
  })];
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
