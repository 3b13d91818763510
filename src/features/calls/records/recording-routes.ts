// Plays recordings to whoever has a link: the whole, or the ranges players ask for.
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { Type } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import type { ByteRange } from "#files/files.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named } from "#core/schema.ts";
import { Uuid } from "#http/answers.ts";
import type { ByteStream, HttpRequest, Reply } from "#http/exchange.ts";
import { pouring } from "#http/pouring.ts";
import { publicRoute, type Route } from "#http/route.ts";
import type { Recordings, Sound } from "./recordings.ts";

const SOUND = {
  schema: Type.String(
    named("Recording", "Stereo sound: 16-bit PCM as WAV, or Opus in Ogg.", "RIFF…")),
  contentType: "audio/wav",
  otherContentType: "audio/ogg",
};

export function recordingRoutes(recordings: Pick<Recordings, "read">): Route[] {
  return [publicRoute({
    tag: "Calls",
    errorShape: "message",
    method: "GET",
    path: "/recordings/{uuid}",
    notFound: "Recording not found",
    summary: "Hear a recording",
    description: "The link is `recording_url` of the call or of one of its transfers; parts of it can "
      + "be asked for by Range.",
    params: { uuid: Uuid("The recording, as the link names it.") },
    query: Type.Object({
      leg: Type.Optional(Type.Integer({ minimum: 1, ...about(
        "Which leg to a colleague the link is of; absent: the call itself.", 1) })),
      expires: Type.String(about("Until when the link is good, in Unix seconds.", "1772530200")),
      signature: Type.String(about("Of the server, over the rest of the link.", "9c56cc51b374")),
    }),
    responses: {
      200: {
        description: "Stereo, customer or colleague left, assistant right: WAV, or what PARLEY_RECORDING_FORMAT says",
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
      const asked = rangeIn(http);
      const found = await recordings.read(uuid, query, asked ?? undefined);
      if (!found) throw new Fault(404, "Recording not found");
      return serve(found, asked);
    },
  })];
}

/** Elements of a page that play, as browsers say of their requests. */
const PLAYERS = new Set(["audio", "video"]);

/**
 * The range asked for; null: the whole. A player in a page keeps its connection for as long as it
 * stands still and asks for more by itself: it gets the beginning of the range. Programs that go on
 * with half a download take what comes for the rest of it.
 */
function rangeIn({ headers }: HttpRequest): ByteRange | null {
  const [, from, to] = /^bytes=(\d{1,15})-(\d{1,15})?$/.exec(headers.range ?? "") ?? [];
  if (from === undefined) return null;
  const first = Number(from);
  const last = Number(to ?? Number.MAX_SAFE_INTEGER);
  return PLAYERS.has(headers["sec-fetch-dest"] ?? "")
    ? { first, last: Math.min(last, first + LIMITS.recordingSliceBytesMax - 1) }
    : { first, last };
}

/** What is short leaves at once, the rest as fast as its reader takes it. */
async function bodyOf(body: Readable, bytes: number): Promise<
  { content: Buffer } | { bytes: number; stream: (stream: ByteStream) => void }
> {
  return bytes > LIMITS.recordingSliceBytesMax
    ? { bytes, stream: pouring(body) }
    : { content: await buffer(body) };
}

async function serve({ bytes, body, contentType }: Sound, asked: ByteRange | null): Promise<Reply> {
  const headers = { "Accept-Ranges": "bytes", "Cache-Control": "private, no-store" };
  if (!asked) return { status: 200, headers, contentType, ...await bodyOf(body, bytes) };
  const { first } = asked;
  const last = Math.min(asked.last, bytes - 1);
  if (first > last) {
    body.destroy();
    return {
      status: 416, headers: { "Content-Range": `bytes */${bytes}` }, contentType, content: "",
    };
  }
  return {
    status: 206,
    headers: { ...headers, "Content-Range": `bytes ${first}-${last}/${bytes}` },
    contentType,
    ...await bodyOf(body, last - first + 1),
  };
}
