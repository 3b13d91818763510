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

const SOUND = {
  schema: Type.String(
    named("Recording", "Stereo sound: 16-bit PCM as WAV, or Opus in Ogg.", "RIFF…")),
  contentType: "audio/wav",
  otherContentType: "audio/ogg",
};

export function recordingRoutes(recordings: Pick<Recordings, "find">): Route[] {
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
        description: "Stereo, customer left, assistant right: WAV, or what PARLEY_RECORDING_FORMAT says",
        ...SOUND,
      },
      206: {
        description: "The range asked for, or its beginning",
        ...SOUND,
      },
      404: { description: "No such recording, or the link has expired" },
      416: { description: "The range is past the end", ...SOUND },
    },
    handle: async ({ uuid, query, http }) => {
      const found = await recordings.find(uuid, query);
      if (!found) throw new Fault(404, "Recording not found");
      return serve(found, http.headers.range);
    },
  })];
}

/** A slice with its length for players that seek, the whole in pieces for everybody else. */
async function serve(
  { path, contentType }: NonNullable<Awaited<ReturnType<Recordings["find"]>>>,
  range: string | undefined,
): Promise<Reply> {
  const bytes = await stat(path).then(({ size }) => size, () => {
    throw new Fault(404, "Recording not found");
  });
  const headers = { "Accept-Ranges": "bytes", "Cache-Control": "private, no-store" };
  const asked = /^bytes=(\d{1,15})-(\d{1,15})?$/.exec(range ?? "");
  if (!asked && bytes > LIMITS.recordingSliceBytesMax) {
    return {
      status: 200, headers, contentType, stream: (stream) => pour(path, stream),
    };
  }
  const first = Number(asked?.[1] ?? 0);
  const last = Math.min(
    Number(asked?.[2] ?? bytes - 1), bytes - 1, first + LIMITS.recordingSliceBytesMax - 1);
  if (first > last) {
    return {
      status: 416, headers: { "Content-Range": `bytes */${bytes}` }, contentType, content: "",
    };
  }
  const content = await slice(path, first, last - first + 1);
  return asked
    ? {
        status: 206,
        headers: { ...headers, "Content-Range": `bytes ${first}-${last}/${bytes}` },
        contentType,
        content,
      }
    : { status: 200, headers, contentType, content };
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
