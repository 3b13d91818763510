// The dashboard's streams over WebSocket. Without HTTP/2 a browser opens six connections to a
// server for all its tabs, and each SSE stream holds one: a third tab with a conversation in it
// could load nothing more. Where no WebSocket gets through, SSE is used as before.

/** Proxies close silent connections, and the client abandons them. */
const PING_MS = 15_000;
/** The streams that also have a socket; a conversation's takes no ticket. */
const STREAMS = /^(.*\/api\/(?:(user\/(?:calls\/\d+\/)?)|conversations\/[^/]+\/))stream$/;
const encoder = new TextEncoder();

/** `plain` is used for everything that is not a stream, and for tickets. */
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
    // The stream's own answer will say what is wrong.
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
  // Each answer schedules the next ping: browsers throttle timers of a hidden page that rearm
  // themselves.
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

/** The SSE text for a frame of the socket. */
function eventOf(type: string, id: string | undefined, json: string): string {
  if (type === "connected") return `: at ${id ?? ""}\n\n`;
  return type === "pong" ? ": beat\n\n" : `data: ${json}\n\n`;
}
