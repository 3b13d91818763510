// The dashboard's streams by WebSocket. Without HTTP/2 a browser has six connections to a server
// for all its tabs: each stream by SSE keeps one of them, so that the third tab with a conversation
// on it would load nothing more. Where no socket comes through, streams come by SSE as before.

/** Silent connections are cut by proxies, and given up by the client. */
const PING_MS = 15_000;
/** Those that have a socket beside them; a conversation's takes no ticket. */
const STREAMS = /^(.*\/api\/(?:(user\/(?:calls\/\d+\/)?)|conversations\/[^/]+\/))stream$/;
const encoder = new TextEncoder();

/** `plain` is asked for all that is no stream, and for tickets. */
export const bySocket = (plain: typeof fetch): typeof fetch => async (input, init = {}) => {
  const isRead = init.method === undefined || init.method === "GET";
  const found = typeof input === "string" && isRead ? STREAMS.exec(input) : null;
  if (!found) return plain(input, init);
  const [, place = "", isTicketed] = found;
  const url = new URL(`${place.replace(/^http/, "ws")}socket`);
  const headers = new Headers(init.headers);
  const signal = init.signal ?? null;
  const after = headers.get("last-event-id");
  if (after !== null) url.searchParams.set("after", after);
  if (isTicketed !== undefined) {
    headers.delete("last-event-id");
    const asked = await plain(`${location.origin}/api/user/stream-tickets`, {
      method: "POST", headers, signal,
    });
    // What is wrong the stream itself will say.
    if (!asked.ok) return plain(input, init);
    url.searchParams.set("ticket", ((await asked.json()) as { ticket: string }).ticket);
  }
  return await open(url, signal) ?? plain(input, init);
};

/** What `fetch` would answer for the stream; null: no socket could be opened. */
function open(url: URL, signal: AbortSignal | null): Promise<Response | null> {
  signal?.throwIfAborted();
  const socket = new WebSocket(url);
  const over = new AbortController();
  const close = (): void => {
    over.abort();
    socket.close();
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  // Each answer brings the next: of a hidden page browsers hold back timers that bring themselves.
  const pingLater = (): void => {
    timer = setTimeout(() => socket.send(`{"type":"ping"}`), PING_MS);
  };
  over.signal.addEventListener("abort", () => clearTimeout(timer));
  return new Promise((resolve, reject) => {
    const events = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const gone = (): void => {
          over.abort();
          controller.close();
          resolve(null);
        };
        socket.addEventListener("open", () => {
          pingLater();
          resolve(new Response(events, { headers: { "content-type": "text/event-stream" } }));
        }, over);
        socket.addEventListener("message", ({ data }) => {
          const { type, id } = JSON.parse(data as string) as { type: string; id?: string };
          if (type === "pong") pingLater();
          controller.enqueue(encoder.encode(eventOf(type, id, data as string)));
        }, over);
        socket.addEventListener("error", gone, over);
        socket.addEventListener("close", gone, over);
        signal?.addEventListener("abort", () => {
          close();
          controller.error(signal.reason);
          reject(signal.reason as Error);
        }, over);
      },
      cancel: close,
    });
  });
}

/** What stands in SSE for a frame of the socket. */
function eventOf(type: string, id: string | undefined, json: string): string {
  if (type === "connected") return `: at ${id ?? ""}\n\n`;
  return type === "pong" ? ": beat\n\n" : `data: ${json}\n\n`;
}
