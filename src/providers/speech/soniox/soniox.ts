// Recognition by Soniox's real-time interface (`/transcribe-websocket`). It sends tokens, a final
// one only once; the call's own turn taking asks for the final text when it wants it.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProviderError } from "#core/faults.ts";
import { errorText } from "#providers/error-text.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { Pieces } from "#providers/speech/pieces.ts";
import type {
  Transcriber, TranscriberStream, TranscriptEvent, TranscriptionOptions,
} from "#providers/speech/port.ts";
import {
  askedStream, boundedHints, createComplaints, RecognitionLink,
} from "#providers/speech/recognition-link.ts";
import { assertKey, socketUrl } from "#providers/speech/vendor-socket.ts";

const VENDOR = "Soniox";
const CHUNK_MS = 60;
/** The vendor hangs up after 20 s without audio or a sign of life. */
const KEEP_ALIVE_MS = 8000;
const TEXT_CHARS_MAX = 8192;
/** The token which says that all audio before the request for a final text is final. */
const FINISHED = "<fin>";

const tokensCheck = TypeCompiler.Compile(Type.Object({
  tokens: Type.Array(Type.Object({
    text: Type.String(),
    is_final: Type.Boolean(),
    language: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  })),
}));
const errorCheck = TypeCompiler.Compile(Type.Object({
  error_code: Type.Number(),
  error_message: Type.Optional(Type.String()),
}));

export function createSoniox(args: VendorArgs): Transcriber {
  assertKey(args.key);
  socketUrl(args.url, "/transcribe-websocket", []);
  return {
    name: `${VENDOR} (${args.model})`,
    detectsTurns: false,
    open: (options, publish) => openStream(args, options, publish),
  };
}

function configOf(model: string, options: TranscriptionOptions): string {
  const { hints, language, languages, rate } = options;
  const terms = boundedHints(hints);
  return JSON.stringify({
    model,
    audio_format: "pcm_s16le",
    sample_rate: rate,
    num_channels: 1,
    language_hints: languages.length > 1 ? languages : [language],
    enable_language_identification: languages.length > 1,
    enable_endpoint_detection: false,
    ...(terms.length > 0 ? { context: { terms } } : {}),
  });
}

function openStream(
  args: VendorArgs, options: TranscriptionOptions,
  publish: (event: TranscriptEvent) => void,
): TranscriberStream {
  const complain = createComplaints(args, VENDOR, new Set());
  /** The final part of the piece. */
  let certain = "";
  let language: string | undefined;
  const control = (type: "finalize" | "keepalive"): void => link.control(JSON.stringify({ type }));
  const pieces = new Pieces({ system: args.system, publish, ask: () => control("finalize") });
  const link: RecognitionLink = new RecognitionLink({
    ...args,
    vendor: VENDOR,
    listenUrl: socketUrl(args.url, "/transcribe-websocket", []),
    // The key goes into the handshake: in the first message it is refused from 2027 on.
    headers: args.key === null ? {} : { authorization: `Bearer ${args.key}` },
    rate: options.rate,
    chunkMs: CHUNK_MS,
    hello: configOf(args.model, options),
    farewell: "",
    keepAlive: { afterMs: KEEP_ALIVE_MS, send: () => control("keepalive") },
    onMessage: (message) => {
      if (errorCheck.Check(message)) {
        const { error_code: code, error_message: why } = message;
        const retryable = code === 408 || code === 429 || code >= 500;
        const text = `${VENDOR} ended the recognition (${code}): ${errorText(why, args.key)}`;
        return link.fail(new ProviderError(text, { retryable }));
      }
      if (!tokensCheck.Check(message)) return complain(message);
      let open = "";
      for (const token of message.tokens) {
        if (token.text === FINISHED) {
          pieces.final(certain, true, options.languages.length > 1 ? language : undefined);
          certain = "";
          continue;
        }
        language = token.language ?? language;
        if (token.is_final) certain = (certain + token.text).slice(0, TEXT_CHARS_MAX);
        else open += token.text;
      }
      pieces.partial(certain + open);
    },
    onFailed: (error) => pieces.fail(error),
  });
  return askedStream(link, pieces);
}
