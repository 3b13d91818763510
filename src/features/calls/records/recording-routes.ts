// Serves recordings to anybody with a link: the whole file, or the range a player requests.
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { Type } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import { within, type ByteRange } from "#files/files.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named } from "#core/schema.ts";
import { Uuid } from "#http/answers.ts";
import type { ByteStream, HttpRequest, Reply } from "#http/exchange.ts";
import { pouring } from "#http/pouring.ts";
import { publicRoute, type Route } from "#http/route.ts";
import type { Recordings, Sound } from "./recordings.ts";

const SOUND = {
  schema: Type.String(
    named("Recording", "Stereo audio: 16-bit PCM as WAV, or Opus in Ogg.", "RIFF…")),
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
    summary: "Get a recording",
    description: "Use the `recording_url` of a call or of one of its transfers. Range requests are "
      + "supported. Send the `ETag` as If-Range to get the whole file if it has changed since (a "
      + "WAV file stored as Opus).",
    params: { uuid: Uuid("The recording's id, from the link.") },
    query: Type.Object({
      leg: Type.Optional(Type.Integer({ minimum: 1, ...about(
        "The leg to a colleague the recording is of. Defaults to the call itself.", 1) })),
      expires: Type.String(about("When the link expires, in Unix seconds.", "1772530200")),
      signature: Type.String(about("The server's signature over the rest of the link.",
        "9c56cc51b374")),
    }),
    responses: {
      200: {
        description: "Stereo, customer or colleague left, assistant right: WAV, or what PARLEY_RECORDING_FORMAT says",
        ...SOUND,
      },
      206: {
        description: "The requested range, or the beginning of it",
        ...SOUND,
      },
      404: { description: "No such recording, or the link has expired" },
      416: { description: "The range starts past the end of the recording", ...SOUND },
    },
    handle: async ({ uuid, query, http }) => {
      const asked = rangeIn(http);
      const found = await recordings.read(uuid, query, asked ?? undefined);
      if (!found) throw new Fault(404, "Recording not found");
      if (!asked || [undefined, tagOf(found)].includes(http.headers["if-range"])) {
        return serve(found, asked);
      }
      found.body.destroy();
      const whole = await recordings.read(uuid, query);
      if (!whole) throw new Fault(404, "Recording not found");
      return serve(whole, null);
    },
  })];
}

/** Past the end of every file. */
const END = Number.MAX_SAFE_INTEGER;
/** Media elements of a page, as browsers name them in Sec-Fetch-Dest. */
const PLAYERS = new Set(["audio", "video"]);

/**
 * The requested range; null: the whole. A player in a page keeps its connection while it is paused
 * and requests more by itself, so it gets only the beginning of the range. Programs that resume a
 * download take whatever comes for all of the rest, so they get it.
 */
function rangeIn({ method, headers }: HttpRequest): ByteRange | null {
  const [, from, to] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(headers.range ?? "") ?? [];
  if (method === "HEAD" || from === undefined || to === undefined || from + to === "") return null;
  // A suffix range; the last 0 bytes lie past every end.
  if (from === "") return { first: -Number(to) || END, last: END };
  const first = Number(from);
  const last = to === "" ? END : Number(to);
  return PLAYERS.has(headers["sec-fetch-dest"] ?? "")
    ? { first, last: Math.min(last, first + LIMITS.recordingSliceBytesMax - 1) }
    : { first, last };
}

/** A finished recording never changes, so that format and length tell its files apart. */
const tagOf = ({ contentType, bytes }: Sound): string => `"${contentType.slice(6)}-${bytes}"`;

/** Sends a short body at once, a longer one as fast as the client reads it. */
async function bodyOf(body: Readable, bytes: number): Promise<
  { content: Buffer } | { bytes: number; stream: (stream: ByteStream) => void }
> {
  return bytes > LIMITS.recordingSliceBytesMax
    ? { bytes, stream: pouring(body) }
    : { content: await buffer(body) };
}

async function serve(sound: Sound, asked: ByteRange | null): Promise<Reply> {
  const { bytes, body, contentType } = sound;
  const headers = {
    "Accept-Ranges": "bytes", "Cache-Control": "private, no-store", "ETag": tagOf(sound),
  };
  if (!asked) return { status: 200, headers, contentType, ...await bodyOf(body, bytes) };
  const { first, last } = within(asked, bytes);
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
