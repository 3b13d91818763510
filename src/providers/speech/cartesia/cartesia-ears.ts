// Recognition by Cartesia's interface without turns (`/stt/websocket`): the call's own turn taking
// asks for the final text when it wants it. Texts continue one another and are joined as they come.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { Pieces } from "#providers/speech/pieces.ts";
import type {
  Transcriber, TranscriberStream, TranscriptEvent, TranscriptionOptions,
} from "#providers/speech/port.ts";
import {
  askedStream, boundedHints, createComplaints, RecognitionLink,
} from "#providers/speech/recognition-link.ts";
import { assertKey, socketUrl } from "#providers/speech/vendor-socket.ts";
import { CARTESIA, cartesiaErrorCheck, cartesiaFault, cartesiaHeaders } from "./cartesia.ts";

const CHUNK_MS = 100;
const KEEP_ALIVE_MS = 10_000;
/** The vendor takes hints of so many characters altogether. */
const HINTS_CHARS_MAX = 1200;
const TEXT_CHARS_MAX = 8192;
/** These models recognise only English; other languages need the model before them. */
const ENGLISH_MODEL = /^ink-2/;
const OTHER_MODEL = "ink-whisper";

const transcriptCheck = TypeCompiler.Compile(Type.Object({
  type: Type.Literal("transcript"),
  is_final: Type.Boolean(),
  text: Type.String(),
  language: Type.Optional(Type.String()),
}));
const flushCheck = TypeCompiler.Compile(Type.Object({ type: Type.Literal("flush_done") }));
export function createCartesiaEars(args: VendorArgs): Transcriber {
  assertKey(args.key);
  listenUrl(args, { rate: 8000, language: "en", languages: ["en"], hints: [] });
  return {
    name: `${CARTESIA} (${args.model})`,
    detectsTurns: false,
    open: (options, publish) => openStream(args, options, publish),
  };
}

function listenUrl({ url, model }: VendorArgs, options: TranscriptionOptions): URL {
  const isOther = ENGLISH_MODEL.test(model) && options.language !== "en";
  let chars = 0;
  const hints = boundedHints(options.hints)
    .filter((hint) => (chars += hint.length) <= HINTS_CHARS_MAX);
  return socketUrl(url, "/stt/websocket", [
    ["model", isOther ? OTHER_MODEL : model],
    ["encoding", "pcm_s16le"],
    ["sample_rate", String(options.rate)],
    ["language", options.language],
    ...hints.map((hint): [string, string] => ["keyterm", hint]),
  ]);
}

function openStream(
  args: VendorArgs, options: TranscriptionOptions,
  publish: (event: TranscriptEvent) => void,
): TranscriberStream {
  const complain = createComplaints(args, CARTESIA, new Set(["done"]));
  const silence = new Int16Array((options.rate * CHUNK_MS) / 1000);
  /** The final part of the piece. */
  let certain = "";
  const pieces = new Pieces({ system: args.system, publish, ask: () => link.control("finalize") });
  const link: RecognitionLink = new RecognitionLink({
    ...args,
    vendor: CARTESIA,
    listenUrl: listenUrl(args, options),
    headers: cartesiaHeaders(args.key),
    rate: options.rate,
    chunkMs: CHUNK_MS,
    farewell: "close",
    keepAlive: { afterMs: KEEP_ALIVE_MS, send: () => link.audio(silence) },
    onMessage: (message) => {
      if (transcriptCheck.Check(message)) {
        const text = `${certain}${message.text}`.slice(0, TEXT_CHARS_MAX);
        if (message.is_final) certain = text;
        return pieces.partial(text);
      }
      if (flushCheck.Check(message)) {
        const text = certain;
        certain = "";
        return pieces.final(text, true);
      }
      if (!cartesiaErrorCheck.Check(message)) return complain(message);
      link.fail(cartesiaFault(message, args.key));
    },
    onFailed: (error) => pieces.fail(error),
  });
  return askedStream(link, pieces);
}
