// The sound of a call in this page, from a click until it is stopped: over a socket and the audio
// thread of the talk page. Used by listening.ts and speaking.ts.
import { isPassing, pause } from "#ui/dashboard/data/passing.ts";

/** The server's code for a call that is over. */
export const CLOSE_OVER = 1000;
/** When this many frames of 20 ms wait to be played, they are no longer live: they are dropped. */
const LATE_FRAMES_MAX = 50;

/** The sound ends with `signal`: when it is stopped, or when the work given to `follow` is over. */
export function openSound(
  onState: (state: "connecting" | "over", problem?: unknown) => void,
): { context: AudioContext; signal: AbortSignal; follow(work: Promise<void>): void; stop(): void } {
  const over = new AbortController();
  const { signal } = over;
  const context = new AudioContext();
  void context.resume().catch(() => undefined);
  signal.addEventListener("abort", () => void context.close());
  const finish = (problem?: unknown): void => {
    if (signal.aborted) return;
    over.abort();
    onState("over", problem);
  };
  onState("connecting");
  return {
    context, signal,
    follow: (work) => void work.then(() => finish(), finish),
    stop: () => over.abort(),
  };
}

export function openSocket(callId: number, way: "listen" | "speak", ticket: string): WebSocket {
  const origin = location.origin.replace(/^http/, "ws");
  const socket = new WebSocket(
    `${origin}/api/user/calls/${callId}/${way}?ticket=${encodeURIComponent(ticket)}`);
  socket.binaryType = "arraybuffer";
  return socket;
}

/** Counts the frames that wait to be played: the audio thread reports each one it has played. */
export function createQueue(port: MessagePort): { add(frame: ArrayBuffer): void; clear(): void } {
  let waiting = 0;
  let run = 0;
  port.onmessage = ({ data }: MessageEvent<{ kind: string; name?: number }>) => {
    if (data.kind === "heard" && data.name === run) waiting -= 1;
  };
  const clear = (): void => {
    run += 1;
    waiting = 0;
    port.postMessage("clear");
  };
  return {
    clear,
    add: (frame) => {
      if (waiting >= LATE_FRAMES_MAX) clear();
      waiting += 1;
      port.postMessage(frame, [frame]);
      port.postMessage({ mark: run });
    },
  };
}

interface Line {
  /** Each connection needs a ticket of its own. */
  askTicket(): Promise<string>;
  onState(state: "lost"): void;
}

/** Runs until the call is over: a broken connection is opened again. */
export async function stayConnected(
  { askTicket, onState }: Line, signal: AbortSignal,
  connect: (ticket: string) => Promise<"over" | "lost">,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const ticket = await askTicket();
      if (signal.aborted || await connect(ticket) === "over") return;
    } catch (error) {
      if (!isPassing(error)) throw error;
    }
    if (signal.aborted) return;
    onState("lost");
    await pause(signal);
  }
}
