// The typed client, `parley/client`: every route of the OpenAPI document by name, and the streams
// made reliable: reconnecting, resuming, reporting gaps. For browsers and Node; imports nothing
// from the server.
import createFetchClient, { type Client } from "openapi-fetch";
import type { paths } from "./api.d.ts";
import { follow, type Frame, type FollowOptions } from "./stream.ts";

export { ParleyError } from "./error.ts";
export type { Frame } from "./stream.ts";
export type { paths } from "./api.d.ts";

export interface ParleyOptions {
  /** Root of the API, e.g. `http://127.0.0.1:8080/api`. */
  baseUrl: string;
  /** For routes below `/user`. */
  apiKey?: string;
  fetch?: typeof fetch;
}

export interface SendOptions {
  /** The same key never sends twice, whatever happened to the first try; generated when absent. */
  idempotencyKey?: string;
  /** Unsaved settings to answer with, in a test conversation of one's own account. */
  draft?: object;
  signal?: AbortSignal;
}

export type WatchOptions = Pick<FollowOptions, "after" | "signal" | "onState">;

export interface Parley extends Client<paths> {
  /**
   * Sends a message and yields the frames of its reply, up to `reply_end` and the stored message.
   * Resumes where a broken connection was. Throws ParleyError when it is refused.
   */
  send(conversationId: string, message: string, options?: SendOptions): AsyncGenerator<Frame>;
  /** Frames of a conversation until the signal aborts, across reconnects, none twice. */
  watchConversation(conversationId: string, options?: WatchOptions): AsyncGenerator<Frame>;
  /** Yields all events of the account. */
  watchAccount(options?: WatchOptions): AsyncGenerator<Frame>;
  /** Yields the account's audit log. */
  watchAudit(options?: WatchOptions): AsyncGenerator<Frame>;
  /** A call: a snapshot, then numbered changes. */
  watchCall(callId: number, options?: WatchOptions): AsyncGenerator<Frame>;
}

/** Browsers refuse to run fetch as a method of another object. */
const globalFetch: typeof fetch = (input, init) => globalThis.fetch(input, init);

/** 128 random bits; pages without TLS have no crypto.randomUUID. */
const newKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Throws for a relative URL outside a page, where it has no base. */
function checkBaseUrl(baseUrl: string): void {
  const { location } = globalThis as { location?: { href: string } };
  const url = URL.canParse(baseUrl, location?.href) ? new URL(baseUrl, location?.href) : null;
  if (url && url.username + url.password !== "") {
    throw new TypeError("baseUrl contains a user name or password; send them in a header instead");
  }
  if (url && /^https?:$/.test(url.protocol)) return;
  throw new TypeError(
    `baseUrl ${JSON.stringify(baseUrl)} is not valid: it must be like http://127.0.0.1:8080/api`);
}

/** Throws TypeError when `baseUrl` is invalid. */
export function createParley(options: ParleyOptions): Parley {
  const { baseUrl, apiKey, fetch: fetchOf = globalFetch } = options;
  checkBaseUrl(baseUrl);
  const headers: Record<string, string> = apiKey === undefined
    ? {}
    : { Authorization: `Bearer ${apiKey}` };
  const api = createFetchClient<paths>({ baseUrl, headers, fetch: fetchOf });
  const root = baseUrl.replace(/\/+$/, "");
  const watch = (path: string, watchOptions: WatchOptions = {}): AsyncGenerator<Frame> =>
    follow({ ...watchOptions, url: `${root}${path}`, headers, fetch: fetchOf });
  return Object.assign(api, {
    send: (conversationId: string, message: string, given: SendOptions = {}) => {
      const { idempotencyKey = newKey(), signal, draft: settings } = given;
      const path = settings
        ? `/user/conversations/${conversationId}/test-messages`
        : `/conversations/${conversationId}/messages`;
      return follow({
        url: `${root}${path}`,
        headers: {
          "Content-Type": "application/json", "Idempotency-Key": idempotencyKey,
          ...settings ? headers : {},
        },
        body: JSON.stringify({ message, ...settings ? { settings } : {} }),
        fetch: fetchOf,
        ...(signal ? { signal } : {}),
      });
    },
    watchConversation: (conversationId: string, given?: WatchOptions) =>
      watch(`/conversations/${conversationId}/stream`, given),
    watchAccount: (given?: WatchOptions) => watch("/user/stream", given),
    watchAudit: (given?: WatchOptions) => watch("/user/audit/stream", given),
    watchCall: (callId: number, given?: WatchOptions) => watch(`/user/calls/${callId}/stream`, given),
  });
}
