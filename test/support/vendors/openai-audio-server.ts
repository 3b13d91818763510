// A server with OpenAI's `/audio/speech` and `/audio/transcriptions` on loopback, controlled by the
// test. OpenAI's own SDK accepts it (providers/speech/openai.test.ts).
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { parseWav } from "#support/calls/wav.ts";
import { listenLocally } from "#support/local-server.ts";
import { createReceived, type Received } from "#support/received.ts";

export interface SpeechRequest {
  authorization: string | undefined;
  body: Record<string, unknown>;
  response: ServerResponse;
  /** Whether the client has gone away. */
  isGone: boolean;
}

export interface TranscriptionRequest {
  authorization: string | undefined;
  fields: Record<string, string>;
  seconds: number;
  rate: number;
  isGone: boolean;
}

export interface OpenAiAudioServer {
  url: string;
  speeches: SpeechRequest[];
  transcriptions: TranscriptionRequest[];
  /** Receives each request of both kinds, once the test's handler has had it. */
  came: Received<{ kind: "speech" | "transcription" }>;
  /** Set by the test, which has to end the response. */
  onSpeech(request: SpeechRequest): void;
  onTranscription(request: TranscriptionRequest, response: ServerResponse): void;
  close(): Promise<void>;
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export async function startOpenAiAudioServer(): Promise<OpenAiAudioServer> {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { authorization } = request.headers;
    const bytes = await bodyOf(request);
    const watch = <Kept extends { isGone: boolean }>(kept: Kept): Kept => {
      response.on("close", () => (kept.isGone = !response.writableFinished));
      return kept;
    };
    if (request.url === "/v1/audio/speech") {
      const body = JSON.parse(bytes.toString()) as Record<string, unknown>;
      const speech = watch({ authorization, body, response, isGone: false });
      server.speeches.push(speech);
      server.onSpeech(speech);
      return server.came.receive({ kind: "speech" });
    }
    if (request.url !== "/v1/audio/transcriptions") {
      response.writeHead(404).end();
      return;
    }
    const headers = { "content-type": request.headers["content-type"] ?? "" };
    const form = await new Response(new Uint8Array(bytes), { headers }).formData();
    const file = form.get("file") as File;
    const { rate, channels } = parseWav(Buffer.from(await file.arrayBuffer()));
    const transcription = watch({
      authorization,
      fields: Object.fromEntries([...form].flatMap(([name, value]) =>
        typeof value === "string" ? [[name, value]] : [])),
      seconds: (channels[0]?.length ?? 0) / rate,
      rate,
      isGone: false,
    });
    server.transcriptions.push(transcription);
    server.onTranscription(transcription, response);
    server.came.receive({ kind: "transcription" });
  };
  const http = createServer((request, response) => void answer(request, response));
  const { url, close } = await listenLocally(http);
  const server: OpenAiAudioServer = {
    url: `${url}/v1`,
    speeches: [],
    transcriptions: [],
    came: createReceived(),
    onSpeech: ({ response }) => {
      response.writeHead(200, { "content-type": "audio/pcm" }).end(Buffer.alloc(4800));
    },
    onTranscription: (_, response) => {
      response.writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ text: "hello there" }));
    },
    close,
  };
  return server;
}
