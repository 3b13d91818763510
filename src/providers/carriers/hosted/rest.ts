// A small client for a vendor's REST API: one request, one bounded JSON response, no retries and no
// redirects. Used by the carriers of this folder and by providers/numbers/twilio.ts.
import { ProviderError } from "#core/faults.ts";
import { timeLimit } from "#core/system.ts";
import { jsonOf } from "#core/values.ts";
import { connecting } from "#outbound/connect.ts";
import { Agent, request } from "#outbound/undici.ts";
import { BEFORE_SENDING } from "#outbound/unreachable.ts";
import type { Dialled } from "./port.ts";

export interface RestLimits {
  /** From the request to the end of the answer. */
  answerMs: number;
  connections: number;
  bytesMax: number;
}

export const HOSTED_REST_LIMITS: RestLimits = {
  answerMs: 10_000,
  connections: 16,
  bytesMax: 256 * 1024,
};

interface RestOptions {
  /** The vendor's name in messages for operators. */
  vendor: string;
  /** The URL that every path is appended to. */
  root: string;
  /** Makes the Authorization header of each request, because some expire within minutes. */
  authorization: () => string;
  limits: RestLimits;
}

export interface RestAnswer {
  status: number;
  /** Null when it is not JSON. */
  body: unknown;
}

type RestMethod = "GET" | "POST" | "PUT" | "DELETE";
/** Form fields in order, which may repeat, or a JSON document. */
type RestBody = { form: [string, string][] } | { json: object };

export interface RestClient {
  /** Rejects with the error of the connection. */
  send(method: RestMethod, path: string, body?: RestBody): Promise<RestAnswer>;
  /** As `send`, but rejects with a ProviderError when no response comes. */
  ask(method: RestMethod, path: string, body?: RestBody): Promise<RestAnswer>;
  /**
   * Places a call; `idOf` reads its id from a successful response. `isRefused`: which other
   * responses mean that nothing rings. Never rejects.
   */
  order(
    path: string, body: RestBody, idOf: (body: unknown) => string | null,
    isRefused?: (answer: RestAnswer) => boolean,
  ): Promise<Dialled>;
  /** The error for an unexpected response, with what a person needs to find the cause. */
  refusal(answer: RestAnswer): ProviderError;
  /** Idempotent. */
  close(): Promise<void>;
}

/** Whether the error of `send` means that the request was never sent. */
export const isBeforeSending = (error: unknown): boolean =>
  BEFORE_SENDING.has((error as NodeJS.ErrnoException).code ?? "");

/** Whether the request succeeded (2xx). */
export const isDone = ({ status }: RestAnswer): boolean => status >= 200 && status < 300;

/** Whether the response says for certain that nothing was done. */
export const isRefusal = ({ status }: RestAnswer): boolean =>
  status >= 400 && status < 500 && status !== 408;

export const basicAuthorization = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

const PATH_SEGMENT_CHARS_MAX = 512;

/** An id from the wire as exactly one segment of a path. */
export function segment(id: string): string {
  if (id === "" || /^\.+$/.test(id) || id.length > PATH_SEGMENT_CHARS_MAX) {
    throw new ProviderError("there is no call with this id", { retryable: false });
  }
  return encodeURIComponent(id.toWellFormed());
}

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;

const CODE = /^[\w.-]{1,40}$/;

const TITLE = /^[\x20-\x7e]{1,120}$/;

/** The error title of Vonage, Telnyx or Plivo; Twilio's text may contain the number called. */
function errorTitleOf(body: unknown): string | null {
  const errors = field(body, "errors");
  const first = Array.isArray(errors) ? errors[0] as unknown : null;
  const title = field(body, "title") ?? field(body, "error") ?? field(first, "title");
  return typeof title === "string" && TITLE.test(title) ? title : null;
}

/** The vendor's error code: Twilio's, SignalWire's, or the first of Telnyx'. */
export function errorCodeOf(body: unknown): string | null {
  const errors = field(body, "errors");
  const code = field(body, "code") ?? field(Array.isArray(errors) ? errors[0] : null, "code");
  const text = typeof code === "number" || typeof code === "string" ? String(code) : "";
  return CODE.test(text) ? text : null;
}

function encode(body: RestBody | undefined): { type: Record<string, string>; text: string | null } {
  if (!body) return { type: {}, text: null };
  return "form" in body
    ? {
      type: { "content-type": "application/x-www-form-urlencoded" },
      text: new URLSearchParams(body.form).toString(),
    }
    : { type: { "content-type": "application/json" }, text: JSON.stringify(body.json) };
}

export function createRestClient({ vendor, root, authorization, limits }: RestOptions): RestClient {
  const agent = new Agent({
    connections: limits.connections,
    connect: connecting(),
    maxResponseSize: limits.bytesMax,
  });
  const send: RestClient["send"] = async (method, path, content) => {
    const { type, text } = encode(content);
    const { statusCode, body } = await request(root + path, {
      dispatcher: agent,
      method,
      headers: { authorization: authorization(), "accept-encoding": "identity", ...type },
      body: text,
      signal: timeLimit(limits.answerMs).signal,
    });
    return { status: statusCode, body: jsonOf(await body.text()) ?? null };
  };
  const refusal: RestClient["refusal"] = ({ status, body }) => {
    const code = errorCodeOf(body);
    const why = [code === null ? null : `code ${code}`, errorTitleOf(body)].filter(Boolean);
    return new ProviderError([`${vendor} answered ${status}`, ...why].join(", "), {
      retryable: status === 429 || status >= 500,
    });
  };
  let closing: Promise<void> | null = null;
  return {
    send,
    refusal,
    order: async (path, content, idOf, isRefused = isRefusal) => {
      try {
        const answer = await send("POST", path, content);
        const callId = isDone(answer) ? idOf(answer.body) : null;
        if (callId !== null) return { kind: "placed", callId };
        return { kind: isRefused(answer) ? "refused" : "unknown", error: refusal(answer) };
      } catch (cause) {
        const retryable = isBeforeSending(cause);
        const message = retryable ? "could not be reached" : "did not answer; the call may have been placed";
        const error = new ProviderError(`${vendor} ${message}`, { retryable, cause });
        return { kind: retryable ? "refused" : "unknown", error };
      }
    },
    ask: async (...what) => {
      try {
        return await send(...what);
      } catch (error) {
        throw new ProviderError(`${vendor} could not be reached`, { retryable: true, cause: error });
      }
    },
    close: () => (closing ??= agent.destroy()),
  };
}
