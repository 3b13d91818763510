// The HTTP half of speech vendors: requests with their deadlines and refusals. Used by the adaptors
// that send a request per text or recording, and by those that request a socket's address.
import type { Dispatcher, FormData } from "undici";
import { ProviderError } from "#core/faults.ts";
import { endpointOf, jsonOf } from "#core/values.ts";
import { connecting } from "#outbound/connect.ts";
import { Agent, request } from "#outbound/undici.ts";
import { errorText } from "#providers/error-text.ts";
import { assertKey } from "./vendor-socket.ts";

export interface VendorHttpLimits {
  connectMs: number;
  /** From the request to the beginning of the response. */
  firstByteMs: number;
  /** Between two pieces of the response. */
  stallMs: number;
  responseBytesMax: number;
  connections: number;
}

const VENDOR_HTTP_LIMITS: VendorHttpLimits = {
  connectMs: 3000,
  firstByteMs: 8000,
  stallMs: 5000,
  // Almost six minutes of speech at 24 kHz.
  responseBytesMax: 16 * 1024 * 1024,
  connections: 64,
};

const REFUSAL_CHARS_MAX = 4096;

interface VendorHttpOptions {
  /** The name in messages for operators. */
  vendor: string;
  /** Base such as `http://127.0.0.1:8000/v1`; its query goes with every request. */
  url: string;
  headers: Record<string, string>;
  /** Never shown in messages; null: the server needs none. */
  key: string | null;
  limits?: Partial<VendorHttpLimits>;
}

type Post<Answer> = (
  path: string, body: object | FormData | string, signal: AbortSignal,
  headers?: Record<string, string>,
) => Promise<Answer>;

export interface VendorHttp {
  /**
   * The body of a 2xx response to a form, a text or, for any other object, its JSON. Throws
   * ProviderError; rejects when the signal aborts. Errors while reading the body come as they are.
   */
  post: Post<AsyncIterable<Buffer>>;
  /** The parsed JSON, with every failure as above; undefined: it is not JSON. */
  ask: Post<unknown>;
}

export function createVendorHttp(options: VendorHttpOptions): VendorHttp {
  const { headers, key, limits, url, vendor } = options;
  assertKey(key);
  const bounds = { ...VENDOR_HTTP_LIMITS, ...limits };
  const agent = new Agent({
    connections: bounds.connections,
    connect: connecting({ timeout: bounds.connectMs }),
    headersTimeout: bounds.firstByteMs,
    bodyTimeout: bounds.stallMs,
    maxResponseSize: bounds.responseBytesMax,
  });
  const post: Post<Dispatcher.ResponseData["body"]> = async (path, body, signal, own) => {
    const isJson = typeof body !== "string" && !(Symbol.toStringTag in body);
    try {
      const response = await request(endpointOf(url, path), {
        dispatcher: agent,
        method: "POST",
        signal,
        headers: {
          "accept-encoding": "identity",
          ...(isJson ? { "content-type": "application/json" } : {}),
          ...headers,
          ...own,
        },
        body: isJson ? JSON.stringify(body) : body as FormData | string,
      });
      if (response.statusCode < 300) return response.body;
      throw await refusal(vendor, response, key);
    } catch (error) {
      throw asProviderError(vendor, error, signal);
    }
  };
  return {
    post,
    ask: async (path, body, signal, own) => {
      try {
        return jsonOf(await (await post(path, body, signal, own)).text());
      } catch (error) {
        throw asProviderError(vendor, error, signal);
      }
    },
  };
}

/** What a connection threw, in words for operators; aborts and refusals as they are. */
export function asProviderError(vendor: string, error: unknown, signal: AbortSignal): unknown {
  if (error instanceof ProviderError || signal.aborted) return error;
  const { code, name } = error as NodeJS.ErrnoException;
  const message = `the connection to ${vendor} failed (${code ?? name})`;
  return new ProviderError(message, { retryable: true, cause: error });
}

async function refusal(
  vendor: string, { statusCode, body }: Dispatcher.ResponseData, key: string | null,
): Promise<ProviderError> {
  let text = "";
  for await (const chunk of body.setEncoding("utf8")) {
    text += chunk as string;
    if (text.length > REFUSAL_CHARS_MAX) break;
  }
  const detail = errorText(jsonOf(text) ?? text, key);
  const why = detail === "" ? "" : `: ${detail}`;
  return new ProviderError(`${vendor} answered ${statusCode}${why}`, {
    retryable: statusCode === 429 || statusCode >= 500,
  });
}
