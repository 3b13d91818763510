// Recognition by AssemblyAI's streaming interface (`/v3/ws`). The vendor detects ends of turns by
// rules of its own: here they only close pieces, and the call's own turn taking asks for the final
// text when it wants it.
import { Type, type Static } from "@sinclair/typebox";
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

const VENDOR = "AssemblyAI";
/** The vendor takes messages of 50 to 1000 ms, and ends the session at any other (error 3007). */
const CHUNK_MS = 60;
const CHUNK_MS_MIN = 50;
const NEWS = new Set([
  "Begin", "SpeechStarted", "Termination", "Warning", "Heartbeat", "Silence", "SpeakerRevision",
]);
/** Codes of errors that do not go away with a retry. */
const LASTING_ERRORS = new Set([1008, 3006, 4001, 4002, 4003]);

const Turn = Type.Object({
  type: Type.Literal("Turn"),
  turn_order: Type.Number(),
  end_of_turn: Type.Boolean(),
  transcript: Type.String(),
  words: Type.Array(Type.Object({ text: Type.String(), end: Type.Number({ minimum: 0 }) })),
  language_code: Type.Optional(Type.String()),
});
type Turn = Static<typeof Turn>;
const turnCheck = TypeCompiler.Compile(Turn);
const errorCheck = TypeCompiler.Compile(Type.Object({
  type: Type.Literal("Error"),
  error_code: Type.Optional(Type.Number()),
  error: Type.String(),
}));

export function createAssemblyAi(args: VendorArgs): Transcriber {
  assertKey(args.key);
  listenUrl(args, { rate: 8000, language: "en", languages: ["en"], hints: [] });
  return {
    name: `${VENDOR} (${args.model})`,
    detectsTurns: false,
    open: (options, publish) => openStream(args, options, publish),
  };
}

function listenUrl({ url, model }: VendorArgs, options: TranscriptionOptions): URL {
  const hints = boundedHints(options.hints);
  return socketUrl(url, "/v3/ws", [
    ["sample_rate", String(options.rate)],
    ["encoding", "pcm_s16le"],
    ["speech_model", model],
    // Formatted text comes later, and a model reads the plain text as well.
    ["format_turns", "false"],
    ...(options.languages.length > 1 ? [["language_detection", "true"] as [string, string]] : []),
    ...(hints.length > 0 ? [["keyterms_prompt", JSON.stringify(hints)] as [string, string]] : []),
  ]);
}

function openStream(
  args: VendorArgs, options: TranscriptionOptions,
  publish: (event: TranscriptEvent) => void,
): TranscriberStream {
  const complain = createComplaints(args, VENDOR, NEWS);
  let closedTurn = -1;
  let coveredMs = 0;
  const pieces = new Pieces({
    system: args.system, publish, ask: () => link.control(JSON.stringify({ type: "ForceEndpoint" })),
  });
  const hearTurn = ({ end_of_turn: isEnd, language_code: language, ...turn }: Turn): void => {
    // A turn that is closed may come again, formatted.
    if (turn.turn_order <= closedTurn) return;
    const words = turn.words.map(({ text }) => text).join(" ");
    if (!isEnd) return pieces.partial(words === "" ? turn.transcript : words);
    closedTurn = turn.turn_order;
    coveredMs = Math.max(coveredMs, turn.words.at(-1)?.end ?? 0);
    pieces.final(turn.transcript, true, language?.slice(0, 2));
  };
  const link: RecognitionLink = new RecognitionLink({
    ...args,
    vendor: VENDOR,
    listenUrl: listenUrl(args, options),
    headers: args.key === null ? {} : { authorization: args.key },
    rate: options.rate,
    chunkMs: CHUNK_MS,
    chunkMsMin: CHUNK_MS_MIN,
    farewell: JSON.stringify({ type: "Terminate" }),
    onMessage: (message) => {
      if (turnCheck.Check(message)) return hearTurn(message);
      if (!errorCheck.Check(message)) return complain(message);
      const retryable = !LASTING_ERRORS.has(message.error_code ?? 0);
      const why = errorText(message.error, args.key);
      link.fail(new ProviderError(`${VENDOR} ended the recognition: ${why}`, { retryable }));
    },
    onFailed: (error) => pieces.fail(error),
  });
  return {
    ...askedStream(link, pieces),
    get coveredMs() {
      return coveredMs;
    },
  };
}
