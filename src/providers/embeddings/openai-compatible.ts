// Embeddings from any server that speaks OpenAI's dialect (OpenAI, Ollama, vLLM, llama.cpp).
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProviderError } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { endpointOf } from "#core/values.ts";
import { connecting } from "#outbound/connect.ts";
import { Agent, request } from "#outbound/undici.ts";
import { keyHeaders } from "#providers/openai-server.ts";
import type { Embedder } from "./port.ts";

const Answer = TypeCompiler.Compile(Type.Object({
  data: Type.Array(Type.Object({
    index: Type.Integer({ minimum: 0 }),
    embedding: Type.Array(Type.Number(), { minItems: 1, maxItems: LIMITS.embeddingLengthMax }),
  })),
}));

interface OpenAiEmbedderOptions {
  /** Base such as `http://host:11434/v1`. */
  url: string;
  key: string | null;
  model: string;
}

interface OpenAiEmbedder extends Embedder {
  /** Drops the connections. Idempotent. */
  close(): Promise<void>;
}

export function createOpenAiEmbedder({ url, key, model }: OpenAiEmbedderOptions): OpenAiEmbedder {
  const agent = new Agent({
    connections: 4, connect: connecting(), maxResponseSize: LIMITS.embeddingBytesMax,
  });
  const endpoint = endpointOf(url, "/embeddings");
  const headers = {
    "content-type": "application/json",
    "accept-encoding": "identity",
    ...keyHeaders(url, key),
  };
  const ask = async (texts: string[], signal: AbortSignal): Promise<unknown> => {
    try {
      const { statusCode, body } = await request(endpoint, {
        dispatcher: agent, method: "POST", headers, signal,
        body: JSON.stringify({ model, input: texts, encoding_format: "float" }),
      });
      const answer = await body.text();
      if (statusCode === 200) return JSON.parse(answer);
      throw new ProviderError(`the embeddings server answered ${statusCode}`, {
        retryable: statusCode === 429 || statusCode >= 500,
      });
    } catch (error) {
      if (error instanceof ProviderError || signal.aborted) throw error;
      const message = "the embeddings server could not be reached or sent an invalid answer";
      throw new ProviderError(message, { retryable: true, cause: error });
    }
  };
  let closing: Promise<void> | null = null;
  return {
    model,
    embed: async (texts, signal) => {
      const answer = await ask(texts, signal);
      if (!Answer.Check(answer) || answer.data.length !== texts.length) {
        throw new ProviderError("the embeddings server sent an unexpected answer", { retryable: false });
      }
      const ordered = [...answer.data].sort((one, other) => one.index - other.index);
      return ordered.map(({ embedding }) => Float32Array.from(embedding));
    },
    close: () => (closing ??= agent.destroy()),
  };
}
