// Requests to addresses that came from outside: tools' endpoints, web pages. One guard in layers:
// the URL is judged, then every address its name resolves to, then the address really connected
// to. Redirects are never followed, bodies never unpacked, time and bytes always bounded.
import type { LookupFunction } from "node:net";
import { setImmediate as nextPhase } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { timeLimit } from "#core/system.ts";
import { createAddressPolicy, type AddressPolicy } from "./addresses.ts";
import { connectByProxy, isProxied } from "./connect.ts";
import { createResolver } from "./names.ts";
import { Agent, buildConnector, Client, request as send } from "./undici.ts";
import { BEFORE_SENDING, whyUnreachable } from "./unreachable.ts";

const CONNECT_MS = 3000;
const IDLE_CONNECTION_MS = 4000;
const ENDING_MS = 50;
const HEADER_BYTES_MAX = 16 * 1024;
/** A request up to this size is written in one piece: its write fails as a whole or not at all. */
const ONE_WRITE_BYTES_MAX = 8 * 1024;

interface OutboundRequest {
  url: string;
  method: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  /** From the first look-up to the last byte; a slow drip does not extend it. */
  totalMs: number;
  bytesMax: number;
  /** A longer answer is cut there instead of failing: only its status counts. */
  isCut?: boolean;
  /** Receives the body as it arrives; true: all that is wanted is there, its end may be missed. */
  onPart?: (part: Buffer, headers: Record<string, string>) => boolean;
}

export type OutboundReply =
  | { kind: "reply"; status: number; headers: Record<string, string>; body: Buffer }
  /** Nothing was sent: the URL, or an address behind it, is not allowed. */
  | { kind: "refused"; reason: "url" | "address" }
  /** `sent` false: the endpoint has certainly not seen the request. `why`: in words, if known. */
  | {
      kind: "failed"; reason: "unreachable" | "timeout" | "too_large"; sent: boolean; why?: string;
    };

export interface Outbound {
  /** Never rejects, but for an aborted signal. */
  request(request: OutboundRequest, signal?: AbortSignal): Promise<OutboundReply>;
  /** Drops the connections. Idempotent. */
  close(): Promise<void>;
}

interface OutboundOptions {
  /** CIDR ranges that may be reached although they are private. */
  allowPrivateNetworks: readonly string[];
  userAgent?: string;
}

class AddressRefused extends Error {}

/** Resolves a name and answers only when every one of its addresses is allowed. */
function guardedLookup(policy: AddressPolicy): LookupFunction {
  const resolve = createResolver();
  return (hostname, options, callback) => {
    const failed = (error: Error): void => callback(error, "", 0);
    void resolve(hostname, options.family).then((addresses) => {
      const [first] = addresses;
      if (!first) return failed(new Error("no address"));
      if (!addresses.every(({ address }) => policy.allows(address))) {
        return failed(new AddressRefused("the name resolves to a refused address"));
      }
      // What was judged is what is connected to: no second look-up, so no rebinding.
      if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    }, failed);
  };
}

function guardedConnector(policy: AddressPolicy): buildConnector.connector {
  const guarded = guardedLookup(policy);
  const connect = buildConnector({ timeout: CONNECT_MS, lookup: guarded, allowH2: false });
  return (options, callback) => {
    if (isProxied(options)) {
      // The proxy is given the address that was judged: by name it might reach another.
      return guarded(options.hostname, {}, (error, address) => error
        ? callback(error, null)
        : connectByProxy(options, String(address), connect, callback, { timeout: CONNECT_MS }));
    }
    connect(options, (error, socket) => {
      if (error) return callback(error, null);
      if (policy.allows(socket.remoteAddress ?? "")) return callback(null, socket);
      socket.destroy();
      callback(new AddressRefused("connected to a refused address"), null);
    });
  };
}

/** Headers that would change the framing, the connection or the host that is asked for. */
const OWN_HEADERS =
  /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*)$/i;

export const isOwnHeader = (name: string): boolean => OWN_HEADERS.test(name);

function headersOf(given: Record<string, string>, userAgent: string): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": userAgent };
  for (const [name, value] of Object.entries(given)) {
    if (!isOwnHeader(name)) headers[name.toLowerCase()] = value;
  }
  // Nothing is unpacked here, so nothing may come packed.
  headers["accept-encoding"] = "identity";
  return headers;
}

function causes(error: unknown): Error[] {
  const found: Error[] = [];
  const visit = (value: unknown): void => {
    if (!(value instanceof Error) || found.length > 10) return;
    found.push(value);
    if (value instanceof AggregateError) value.errors.forEach(visit);
    visit(value.cause);
  };
  visit(error);
  return found;
}

/** Null when it is longer than the bound and not to be cut there. */
async function readBody(
  body: Dispatcher.ResponseData["body"],
  headers: Record<string, string>,
  { bytesMax, isCut = false, onPart }: OutboundRequest,
): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let ending: NodeJS.Timeout | null = null;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      chunks.push(chunk);
      // Leaving the loop destroys the body and with it the connection.
      if (bytes > bytesMax) return isCut ? Buffer.concat(chunks, bytesMax) : null;
      // The end mostly follows at once, and then the connection can be reused.
      if (ending === null && onPart?.(chunk, headers)) {
        ending = setTimeout(() => body.destroy(), ENDING_MS);
      }
    }
  } catch (error) {
    if (ending === null) throw error;
  } finally {
    if (ending !== null) clearTimeout(ending);
  }
  return Buffer.concat(chunks);
}

type Failure = Exclude<OutboundReply, { kind: "reply" }>;

/** A kept connection that the other side reset before the first byte could be written. */
const couldNotWrite = ({ body = "", headers = {} }: OutboundRequest, chain: Error[]): boolean =>
  chain.some((cause) => (cause as NodeJS.ErrnoException).syscall === "write")
  && Buffer.byteLength(body) + JSON.stringify(headers).length <= ONE_WRITE_BYTES_MAX;

function failureOf(wanted: OutboundRequest, error: unknown, isOver: boolean): Failure {
  const chain = causes(error);
  if (chain.some((cause) => cause instanceof AddressRefused)) {
    return { kind: "refused", reason: "address" };
  }
  // Not every error of the HTTP parser has a code.
  const codes = chain.map((cause) => (cause as NodeJS.ErrnoException).code ?? cause.name);
  const sent = !codes.some((code) => BEFORE_SENDING.has(code)) && !couldNotWrite(wanted, chain);
  if (isOver || codes.includes("UND_ERR_CONNECT_TIMEOUT")) {
    return { kind: "failed", reason: "timeout", sent };
  }
  const why = whyUnreachable(codes);
  return { kind: "failed", reason: "unreachable", sent, ...why !== null && { why } };
}

export function createOutbound(options: OutboundOptions): Outbound {
  const policy = createAddressPolicy(options.allowPrivateNetworks);
  const settings = {
    connect: guardedConnector(policy),
    pipelining: 1,
    keepAliveTimeout: IDLE_CONNECTION_MS,
    maxHeaderSize: HEADER_BYTES_MAX,
    // The total of each request bounds both.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  // As many connections as requests, whose number the caller bounds: accounts that call the same
  // host must not wait for one another.
  const agent = new Agent(settings);
  let closing: Promise<void> | null = null;

  const attempt = async (
    wanted: OutboundRequest, url: URL, dispatcher: Dispatcher, signal: AbortSignal,
  ): Promise<OutboundReply> => {
    const response = await send(url, {
      dispatcher,
      method: wanted.method as Dispatcher.HttpMethod,
      headers: headersOf(wanted.headers ?? {}, options.userAgent ?? "parley"),
      body: wanted.body ?? null,
      signal,
    });
    const headers = Object.fromEntries(Object.entries(response.headers)
      .map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]));
    const body = await readBody(response.body, headers, wanted);
    if (!body) return { kind: "failed", reason: "too_large", sent: true };
    return { kind: "reply", status: response.statusCode, headers, body };
  };

  const attempts = async (
    wanted: OutboundRequest, url: URL, deadline: AbortSignal, signal: AbortSignal | undefined,
  ): Promise<OutboundReply> => {
    const either = signal ? AbortSignal.any([signal, deadline]) : deadline;
    let dispatcher: Dispatcher = agent;
    for (let isLast = false; ; isLast = true) {
      // Lets undici first notice the connections that were closed while this thread was busy.
      await nextPhase();
      try {
        return await attempt(wanted, url, dispatcher, either);
      } catch (error) {
        if (signal?.aborted) throw error;
        const chain = causes(error);
        if (isLast || deadline.aborted || !couldNotWrite(wanted, chain)) {
          return failureOf(wanted, error, deadline.aborted);
        }
        dispatcher = new Client(url.origin, settings);
      } finally {
        if (isLast) await dispatcher.destroy();
      }
    }
  };
  const request: Outbound["request"] = async (wanted, signal) => {
    const url = policy.readUrl(wanted.url);
    if (!url) return { kind: "refused", reason: policy.refusalOf(wanted.url) };
    const limit = timeLimit(wanted.totalMs);
    try {
      return await attempts(wanted, url, limit.signal, signal);
    } finally {
      limit.cancel();
    }
  };
  return { request, close: () => (closing ??= agent.destroy()) };
}
