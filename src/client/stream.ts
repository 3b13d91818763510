// A stream of the server as one sequence of frames: it resumes whenever the connection breaks, and
// yields nothing twice. Used by client.ts.
import { createParser } from "eventsource-parser";
import { ParleyError } from "./error.ts";

/** One event; its members are the protocol's. */
export interface Frame {
  type: string;
  /** Its position in the log; absent for frames that are not in the log. */
  id?: string;
  [member: string]: unknown;
}

export interface FollowOptions {
  url: string;
  headers: Record<string, string>;
  fetch: typeof fetch;
  /** Sent with POST; the stream then is the answer to it, and has an end. */
  body?: string;
  /** Resumes after this position. */
  after?: string;
  signal?: AbortSignal;
  /** Lets a page show that what it displays may be stale. */
  onState?: (isConnected: boolean) => void;
}

/** The server sends something every 15 s: a connection silent for this long is dead. */
const SILENCE_MS = 40_000;
const AT = "at ";
const BACKOFF_MS = 250;
const BACKOFF_MS_MAX = 10_000;
/** The longest a server's `Retry-After` is honoured. */
const RETRY_AFTER_MS_MAX = 60_000;

/** `<sequence>.<UTF-16 units of the reply in flight>`. */
interface Position {
  sequence: number;
  chars: number;
}

function positionOf(id: string | undefined): Position | null {
  const match = /^(\d+)(?:\.(\d+))?$/.exec(id ?? "");
  return match ? { sequence: Number(match[1]), chars: Number(match[2] ?? 0) } : null;
}

const BEGINNINGS = new Set(["stream_reset", "snapshot"]);

/** What has been yielded: a place in the log, and what came at that place. */
class Progress {
  lastId: string | undefined;
  #last: Position | null;
  #there = new Set<string>();

  constructor(after: string | undefined) {
    this.lastId = after;
    this.#last = positionOf(after);
  }

  /** The new part of the frame, or null. Frames repeat when a message is sent once more. */
  take(frame: Frame): Frame | null {
    const at = positionOf(frame.id);
    // Begins anew, also before what has been yielded: the server's data may be older than that.
    if (BEGINNINGS.has(frame.type)) this.#last = null;
    const last = this.#last;
    if (!at) return frame;
    const isBefore = last !== null
      && (at.sequence < last.sequence || (at.sequence === last.sequence && at.chars < last.chars));
    const isAt = at.sequence === last?.sequence && at.chars === last.chars;
    // Several frames share one position: the start of a reply, function calls, its end.
    const kind = `${frame.type} ${String(frame.call_id ?? "")}`;
    if (isBefore || (isAt && this.#there.has(kind))) return null;
    if (!isAt) this.#there.clear();
    this.#there.add(kind);
    this.#last = at;
    this.lastId = frame.id;
    const { text } = frame;
    if (frame.type !== "reply_delta" || typeof text !== "string") return frame;
    const known = at.sequence === last?.sequence ? last.chars - (at.chars - text.length) : 0;
    return known > 0 ? { ...frame, text: text.slice(known) } : frame;
  }
}

const isEnd = ({ type, message }: Frame): boolean =>
  type === "reply_failed"
  || (type === "message_added" && (message as { role?: string } | undefined)?.role === "assistant");

/** Throws ParleyError for a refusal that trying again would not change. */
export async function* follow(options: FollowOptions): AsyncGenerator<Frame> {
  const { body, signal } = options;
  // Throws here for a key that no header can hold; below it would look like a broken connection.
  new Headers(options.headers);
  const progress = new Progress(options.after);
  let failures = 0;
  let hasConnected = false;
  while (!signal?.aborted) {
    const connection = watchConnection(signal);
    let afterMs = 0;
    try {
      const response = await open({ ...options, signal: connection.signal }, progress.lastId);
      if (!isOfType(response, "text/event-stream")) {
        // After a stream has worked, a page comes from a captive network or a proxy, so it is
        // temporary.
        if (!hasConnected && !isOfType(response, "application/json")) {
          throw noParley(response, options.url);
        }
        yield { ...await response.json() as object, type: "answered" };
        return;
      }
      hasConnected = true;
      options.onState?.(true);
      // The position at which the stream began, in case it breaks before any event.
      const began = (position: string): string => (progress.lastId ??= position);
      let isGone = false;
      for await (const frame of framesOf(response, connection.heard, began)) {
        failures = 0;
        isGone ||= frame.type === "stream_reset";
        if (frame.type === "reconnect") {
          isGone = false;
          break;
        }
        const fresh = progress.take(frame);
        if (fresh) yield fresh;
        if (body !== undefined && isEnd(frame)) return;
      }
      // The log no longer has the reply to a repeated message: only the history does.
      if (body !== undefined && isGone) return;
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof ParleyError) {
        // The server's refusals have a JSON body; one without is such a page, too.
        if (!isPassing(error.status) && !(hasConnected && error.body === null)) throw error;
        afterMs = Math.min(error.retryAfterMs, RETRY_AFTER_MS_MAX);
      }
    } finally {
      connection.close();
    }
    options.onState?.(false);
    failures += 1;
    const backoffMs = Math.min(BACKOFF_MS * 2 ** failures, BACKOFF_MS_MAX);
    await wait(afterMs + backoffMs * (0.5 + Math.random() / 2), signal);
  }
}

const isPassing = (status: number): boolean => status === 429 || status >= 500;
const isOfType = ({ headers }: Response, type: string): boolean =>
  headers.get("content-type")?.toLowerCase().startsWith(type) === true;

/** In seconds or as a date; 0: absent or not understood. */
function retryAfterMs(header: string): number {
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Math.max(0, ms || 0);
}

function noParley({ status, url, headers }: Response, asked: string): ParleyError {
  const type = headers.get("content-type") ?? "something without a type";
  const message = `${url || asked} is not a Parley server: it answered with ${type}; check baseUrl`;
  return new ParleyError(status, { message });
}

async function open(options: FollowOptions, lastId: string | undefined): Promise<Response> {
  const { url, headers, body, signal } = options;
  const response = await options.fetch(url, {
    method: body === undefined ? "GET" : "POST",
    // Firefox holds a second page's identical request until the first has ended, to share its
    // response.
    cache: "no-store",
    headers: {
      ...headers,
      Accept: "text/event-stream",
      ...(lastId === undefined || body !== undefined ? {} : { "Last-Event-ID": lastId }),
    },
    ...(body === undefined ? {} : { body }),
    ...(signal ? { signal } : {}),
  });
  if (response.ok) return response;
  const afterMs = retryAfterMs(response.headers.get("retry-after") ?? "");
  throw new ParleyError(response.status, await response.json().catch(() => null), afterMs);
}

const isPage = (): boolean => typeof addEventListener === "function";

/** Aborts when nothing has arrived for too long, or the device reports that it is offline. */
function watchConnection(signal: AbortSignal | undefined) {
  const abort = new AbortController();
  const breakOff = (): void => abort.abort();
  let timer = setTimeout(breakOff, SILENCE_MS);
  signal?.addEventListener("abort", breakOff, { once: true });
  if (isPage()) addEventListener("offline", breakOff);
  return {
    signal: abort.signal,
    heard: (): void => {
      clearTimeout(timer);
      timer = setTimeout(breakOff, SILENCE_MS);
    },
    close: (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", breakOff);
      if (isPage()) removeEventListener("offline", breakOff);
    },
  };
}

async function* framesOf(
  response: Response, heard: () => void, began: (position: string) => void,
): AsyncGenerator<Frame> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  const ready: Frame[] = [];
  const parser = createParser({
    onEvent: ({ id, data }) => {
      const frame = JSON.parse(data) as Frame;
      ready.push(id === undefined ? frame : { ...frame, id });
    },
    onComment: (comment) => {
      if (comment.startsWith(AT)) began(comment.slice(AT.length));
    },
  });
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      heard();
      parser.feed(read.value);
      yield* ready.splice(0);
    }
  } finally {
    // A consumer that stops reading leaves no open connection behind.
    await reader.cancel().catch(() => undefined);
  }
}

/** Resolves after the time, earlier when a browser is back online or the signal aborts. */
function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      if (isPage()) removeEventListener("online", done);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (isPage()) addEventListener("online", done);
    signal?.addEventListener("abort", done);
  });
}
