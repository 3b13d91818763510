// The HTTP half of OpenAI's audio interface, which OpenAI, Speaches, Kokoro-FastAPI and others
// speak: requests with their deadlines and refusals. Used by openai-speech.ts and
// openai-transcription.ts.
import { Agent, request, type Dispatcher, type FormData } from "undici";
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { jsonOf } from "#core/values.ts";
import { errorText } from "#providers/models/openai-reply.ts";
import { assertKey } from "#providers/speech/vendor-socket.ts";

export interface OpenAiAudioLimits {
  connectMs: number;
  /** From the request to the beginning of the response. */
  firstByteMs: number;
  /** Between two pieces of the response. */
  stallMs: number;
  responseBytesMax: number;
  connections: number;
}

const OPENAI_AUDIO_LIMITS: OpenAiAudioLimits = {
  connectMs: 3000,
  firstByteMs: 8000,
  stallMs: 5000,
  // Almost six minutes of speech at 24 kHz.
  responseBytesMax: 16 * 1024 * 1024,
  connections: 64,
};

const REFUSAL_CHARS_MAX = 4096;

export interface OpenAiAudioOptions {
  /** Base such as `http://127.0.0.1:8000/v1`. */
  url: string;
  /** Null: the server asks for none. */
  key: string | null;
  model: string;
  system: System;
  log: Logger;
  limits?: Partial<OpenAiAudioLimits>;
}

interface AudioBody extends AsyncIterable<Buffer> {
  text(): Promise<string>;
}

export interface AudioApi {
  /** The body of a 2xx response. Throws ProviderError; rejects when the signal aborts. */
  post(path: string, body: object | FormData, signal: AbortSignal): Promise<AudioBody>;
}

export function createAudioApi({ url, key, limits }: OpenAiAudioOptions): AudioApi {
  assertKey(key);
  const bounds = { ...OPENAI_AUDIO_LIMITS, ...limits };
  const agent = new Agent({
    connections: bounds.connections,
    connect: { timeout: bounds.connectMs },
    headersTimeout: bounds.firstByteMs,
    bodyTimeout: bounds.stallMs,
    maxResponseSize: bounds.responseBytesMax,
  });
  const base = url.replace(/\/+$/, "");
  return {
    post: async (path, body, signal) => {
      const isForm = Symbol.toStringTag in body;
      try {
        const response = await request(`${base}${path}`, {
          dispatcher: agent,
          method: "POST",
          signal,
          headers: {
            "accept-encoding": "identity",
            ...(isForm ? {} : { "content-type": "application/json" }),
            ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          },
          body: isForm ? body as FormData : JSON.stringify(body),
        });
        if (response.statusCode < 300) return response.body;
        throw await refusal(response, key);
      } catch (error) {
        throw asProviderError(error, signal);
      }
    },
  };
}

/** What a connection threw, in words for operators; aborts and refusals as they are. */
export function asProviderError(error: unknown, signal: AbortSignal): unknown {
  if (error instanceof ProviderError || signal.aborted) return error;
  const { code, name } = error as NodeJS.ErrnoException;
  const message = `the connection to the speech server failed (${code ?? name})`;
  return new ProviderError(message, { retryable: true, cause: error });
}

async function refusal(
  { statusCode, body }: Dispatcher.ResponseData, key: string | null,
): Promise<ProviderError> {
  let text = "";
  for await (const chunk of body.setEncoding("utf8")) {
    text += chunk as string;
    if (text.length > REFUSAL_CHARS_MAX) break;
  }
  const detail = errorText(jsonOf(text) ?? text, key);
  const why = detail === "" ? "" : `: ${detail}`;
  return new ProviderError(`the speech server answered ${statusCode}${why}`, {
    retryable: statusCode === 429 || statusCode >= 500,
  });
}
