// Recognition by Gladia's live interface: a session is requested over HTTP (`POST /v2/live`), and
// listens at an address of its own. The vendor cannot be asked for a final text, but gives one
// after a silence: when the call wants it, that silence is sent at once.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProviderError } from "#core/faults.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { Pieces } from "#providers/speech/pieces.ts";
import type {
  Transcriber, TranscriberStream, TranscriptEvent, TranscriptionOptions,
} from "#providers/speech/port.ts";
import {
  askedStream, boundedHints, createComplaints, RecognitionLink,
} from "#providers/speech/recognition-link.ts";
import { createVendorHttp, type VendorHttp } from "#providers/speech/vendor-http.ts";
import { assertKey, socketUrl } from "#providers/speech/vendor-socket.ts";

const VENDOR = "Gladia";
const CHUNK_MS = 60;
const KEEP_ALIVE_MS = 8000;
/** The silence after which the vendor ends an utterance, and the silence sent to make it do so. */
const ENDPOINT_MS = 300;
export const CLOSING_SILENCE_MS = 2 * ENDPOINT_MS;
/** How long the request for a session may take. */
const SESSION_MS = 5000;
const NEWS = new Set([
  "start_session", "start_recording", "speech_end", "stop_recording", "end_recording", "end_session",
]);

const sessionCheck = TypeCompiler.Compile(Type.Object({ url: Type.String({ pattern: "^wss?://" }) }));
const speechCheck = TypeCompiler.Compile(Type.Object({ type: Type.Literal("speech_start") }));
const transcriptCheck = TypeCompiler.Compile(Type.Object({
  type: Type.Literal("transcript"),
  data: Type.Object({
    is_final: Type.Boolean(),
    utterance: Type.Object({ text: Type.String(), language: Type.Optional(Type.String()) }),
  }),
}));

export function createGladia(args: VendorArgs): Transcriber {
  const { key, model, url } = args;
  assertKey(key);
  // The socket's address comes with the session, but an invalid URL is found here.
  socketUrl(url, "/v2/live", []);
  const http = createVendorHttp({
    vendor: VENDOR, url: url.replace(/^ws/i, "http"), key,
    headers: key === null ? {} : { "x-gladia-key": key },
    limits: { firstByteMs: SESSION_MS },
  });
  return {
    name: `${VENDOR} (${model})`,
    detectsTurns: false,
    open: (options, publish) => openStream(args, http, options, publish),
  };
}

function sessionOf(model: string, options: TranscriptionOptions): object {
  const { language, languages, rate } = options;
  const hints = boundedHints(options.hints);
  return {
    encoding: "wav/pcm",
    bit_depth: 16,
    sample_rate: rate,
    channels: 1,
    model,
    endpointing: ENDPOINT_MS / 1000,
    language_config: languages.length > 1
      ? { languages, code_switching: true }
      : { languages: [language], code_switching: false },
    realtime_processing: hints.length > 0
      ? { custom_vocabulary: true, custom_vocabulary_config: { vocabulary: hints } }
      : {},
    messages_config: {
      receive_partial_transcripts: true,
      receive_final_transcripts: true,
      receive_speech_events: true,
      receive_pre_processing_events: false,
      receive_realtime_processing_events: false,
      receive_post_processing_events: false,
      receive_acknowledgments: false,
      receive_errors: true,
      receive_lifecycle_events: false,
    },
  };
}

async function askForSession(
  http: VendorHttp, session: object, signal: AbortSignal,
): Promise<URL> {
  const answer = await http.ask("/v2/live", session, signal);
  if (sessionCheck.Check(answer) && URL.canParse(answer.url)) return new URL(answer.url);
  throw new ProviderError(`${VENDOR} sent no WebSocket address`, { retryable: false });
}

function openStream(
  args: VendorArgs, http: VendorHttp, options: TranscriptionOptions,
  publish: (event: TranscriptEvent) => void,
): TranscriberStream {
  const complain = createComplaints(args, VENDOR, NEWS);
  const asking = new AbortController();
  const silence = (ms: number): Int16Array => new Int16Array((options.rate * ms) / 1000);
  /** An utterance may be open: the vendor has reported its beginning, or closed none so far. */
  let isOpen = true;
  const pieces = new Pieces({
    system: args.system, publish,
    ask: () => {
      if (isOpen) {
        link.audio(silence(CLOSING_SILENCE_MS));
        link.flush();
      } else pieces.final("", true);
      isOpen = true;
    },
  });
  const link: RecognitionLink = new RecognitionLink({
    ...args,
    vendor: VENDOR,
    listenUrl: askForSession(http, sessionOf(args.model, options), asking.signal),
    headers: {},
    rate: options.rate,
    chunkMs: CHUNK_MS,
    farewell: JSON.stringify({ type: "stop_recording" }),
    keepAlive: { afterMs: KEEP_ALIVE_MS, send: () => link.audio(silence(CHUNK_MS)) },
    onMessage: (message) => {
      if (speechCheck.Check(message)) isOpen = true;
      else if (!transcriptCheck.Check(message)) complain(message);
      else {
        const { is_final: isFinal, utterance: { language, text } } = message.data;
        isOpen = !isFinal;
        if (!isFinal) return pieces.partial(text);
        pieces.final(text, true, options.languages.length > 1 ? language : undefined);
      }
    },
    onFailed: (error) => pieces.fail(error),
  });
  const stream = askedStream(link, pieces);
  return {
    ...stream,
    close: () => {
      asking.abort();
      stream.close();
    },
  };
}
