// Plays recordings to whoever has a link: the whole, or the ranges players ask for.
import { buffer } from "node:stream/consumers";
import { Type } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import type { ByteRange } from "#files/files.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named } from "#core/schema.ts";
import { Uuid } from "#http/answers.ts";
import type { Reply } from "#http/exchange.ts";
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
      const asked = rangeIn(http.headers.range);
      const found = await recordings.read(uuid, query, asked ?? undefined);
      if (!found) throw new Fault(404, "Recording not found");
      return serve(found, asked);
    },
  })];
}

/** What players that seek get at once: the range, or its beginning. Null: they want the whole. */
function rangeIn(header: string | undefined): ByteRange | null {
  const [, from, to] = /^bytes=(\d{1,15})-(\d{1,15})?$/.exec(header ?? "") ?? [];
  if (from === undefined) return null;
  const first = Number(from);
  const most = first + LIMITS.recordingSliceBytesMax - 1;
  return { first, last: Math.min(Number(to ?? most), most) };
}

/** A slice with its length for players that seek, the whole in pieces for everybody else. */
async function serve({ bytes, body, contentType }: Sound, asked: ByteRange | null): Promise<Reply> {
  const headers = { "Accept-Ranges": "bytes", "Cache-Control": "private, no-store" };
  if (!asked) {
    return bytes > LIMITS.recordingSliceBytesMax
      ? { status: 200, headers, contentType, stream: pouring(body) }
      : { status: 200, headers, contentType, content: await buffer(body) };
  }
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
    content: await buffer(body),
  };
}
