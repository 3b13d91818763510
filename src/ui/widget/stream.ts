// Watches a conversation's stream from a position on and reconnects whenever it is cut: by the
// network, a restart, or silence longer than the server's heartbeat. It reads with `fetch`, not
// EventSource, which reports neither why a stream is refused nor that it has gone silent.

import { isOwn, type Away, type Desk, type Message, type Rating } from "./api.ts";

export interface Frame {
  type: string;
  /** Position after this frame; absent where it is no part of the log. */
  id?: string;
  turn_id?: number | null;
  text?: string;
  stopped?: boolean;
  call_id?: string;
  name?: string;
  reason?: string;
  error?: string;
  message?: Message;
  desk?: Desk["desk"];
  holder?: { name: string } | null;
  away?: Away | null;
  by?: { role: string };
  rating?: Rating | null;
}

interface WatchOptions {
  url: string;
  /** Read at every connect. */
  position(): string;
  frames(frames: Frame[]): void;
  connected(isConnected: boolean): void;
  /** What was missed is no longer kept: moves the position to where the history ends. */
  reset(): Promise<void>;
  /** The server says that there is nothing to watch here: it will not be asked again. */
  gone(): void;
}

/** The server beats every 15 seconds. */
const SILENCE_MS_MAX = 40_000;
const PAUSE_MS_MAX = 15_000;

/** Cuts what arrives into frames; the rest waits for more. */
function createParser(): (text: string) => Frame[] {
  let rest = "";
  return (text) => {
    const events = (rest + text).split("\n\n");
    rest = events.pop() ?? "";
    return events.flatMap((event) => {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      return data === undefined ? [] : [JSON.parse(data.slice(6)) as Frame];
    });
  };
}

/**
 * Resolves after a pause that grows with the failures; at once when the network is back, or when
 * `signal` aborts.
 */
export function pauseAfter(failures: number, signal: AbortSignal): Promise<void> {
  const longest = Math.min(PAUSE_MS_MAX, 500 * 2 ** failures);
  // Jitter, so that the clients of a restarted server do not all come back at once.
  const ms = longest * (0.5 + Math.random() / 2);
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
    signal.addEventListener("abort", done);
  });
}

async function readOnce(options: WatchOptions, signal: AbortSignal): Promise<"cut" | "gone" | "reset"> {
  const attempt = new AbortController();
  const cut = (): void => attempt.abort();
  signal.addEventListener("abort", cut);
  addEventListener("offline", cut);
  let silence = setTimeout(cut, SILENCE_MS_MAX);
  try {
    const response = await fetch(`${options.url}?after=${options.position()}`, {
      headers: { Accept: "text/event-stream" },
      credentials: "omit",
      cache: "no-store",
      signal: attempt.signal,
    });
    if (isOwn(response) && (response.status === 404 || response.status === 403)) return "gone";
    if (!response.ok || !response.body) return "cut";
    options.connected(true);
    const parse = createParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done || signal.aborted) return "cut";
      clearTimeout(silence);
      silence = setTimeout(cut, SILENCE_MS_MAX);
      const frames = parse(value);
      const gap = frames.findIndex(({ type }) => type === "stream_reset");
      const told = gap < 0 ? frames : frames.slice(0, gap);
      if (told.length > 0) options.frames(told);
      if (gap >= 0) return "reset";
    }
  } catch {
    // Cut by the network or by us: either way the next attempt goes on from the position.
    return "cut";
  } finally {
    cut();
    clearTimeout(silence);
    removeEventListener("offline", cut);
    signal.removeEventListener("abort", cut);
  }
}

/** Ends when the signal is aborted. */
export async function watch(options: WatchOptions, signal: AbortSignal): Promise<void> {
  let failures = 0;
  const connected = (): void => {
    failures = 0;
    options.connected(true);
  };
  while (!signal.aborted) {
    const outcome = await readOnce({ ...options, connected }, signal);
    if (signal.aborted) return;
    if (outcome === "reset") {
      await options.reset();
      continue;
    }
    options.connected(false);
    if (outcome === "gone") return options.gone();
    await pauseAfter(failures, signal);
    failures += 1;
  }
}
