// Listening in on a call: both sides as the server mixes them, over a socket, through the audio
// thread of the talk page. Begins in a click, since browsers let only what begins there be heard;
// everything it opens is freed by `stop`.
import { CLOSE_OVER, createQueue, openSocket, openSound, pause } from "./sound.ts";

export type ListenState = "connecting" | "playing" | "lost" | "over";

export interface Listening {
  /** How loud it is just now, 0 to 1. */
  level(): number;
  stop(): void;
}

interface ListenTo {
  callId: number;
  /** Each connection needs a ticket of its own. */
  askTicket(): Promise<string>;
  /** Whether a failure to get one may pass. */
  isPassing(error: unknown): boolean;
  /** `problem`: why it is over, where that is not because the call is. */
  onState(state: ListenState, problem?: unknown): void;
}

/** The audio thread's. */
const RATE = 16_000;
const RETRY_MS = 1000;

export function startListening(to: ListenTo): Listening {
  const { context, signal, follow, stop } = openSound(to.onState);
  const analyser = new AnalyserNode(context, { fftSize: 512 });
  analyser.connect(context.destination);
  follow(listen(to, context, analyser, signal));
  const samples = new Float32Array(analyser.fftSize);
  return {
    level: () => {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
      return Math.min(1, Math.sqrt(power) * 4);
    },
    stop,
  };
}

/** Until the call is over: a connection that breaks is made again. */
async function listen(
  to: ListenTo, context: AudioContext, out: AudioNode, signal: AbortSignal,
): Promise<void> {
  await context.audioWorklet.addModule("/talk/worklet.js");
  if (signal.aborted) return;
  const playback = new AudioWorkletNode(context, "playback", { numberOfInputs: 0 });
  playback.connect(out);
  while (!signal.aborted) {
    try {
      const ticket = await to.askTicket();
      if (signal.aborted || await play(to, ticket, playback, signal) === "over") return;
    } catch (error) {
      if (!to.isPassing(error)) throw error;
    }
    if (signal.aborted) return;
    to.onState("lost");
    await pause(RETRY_MS, signal);
  }
}

/** Rejects when what comes cannot be played. */
function play(
  { callId, onState }: ListenTo, ticket: string, playback: AudioWorkletNode, signal: AbortSignal,
): Promise<"over" | "lost"> {
  const { promise, resolve, reject } = Promise.withResolvers<"over" | "lost">();
  const socket = openSocket(callId, "listen", ticket);
  const queue = createQueue(playback.port);
  let raise = (frame: ArrayBuffer): ArrayBuffer => frame;
  const close = (): void => socket.close();
  signal.addEventListener("abort", close);
  socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
    if (typeof data !== "string") return queue.add(raise(data));
    const { rate } = JSON.parse(data) as { rate: number };
    if (RATE % rate !== 0) return reject(new Error(`Audio at ${rate} Hz cannot be played here.`));
    if (rate < RATE) raise = raiserOf(RATE / rate);
    onState("playing");
  };
  socket.onclose = ({ code }) => {
    signal.removeEventListener("abort", close);
    queue.clear();
    resolve(code === CLOSE_OVER || signal.aborted ? "over" : "lost");
  };
  return promise.finally(close);
}

/**
 * Makes frames of 16-bit samples `factor` times as fast, as a telephone's 8 kHz have to be for the
 * audio thread: on straight lines from sample to sample, also from one frame to the next.
 */
export function raiserOf(factor: number): (frame: ArrayBuffer) => ArrayBuffer {
  let last = 0;
  return (frame) => {
    const samples = new Int16Array(frame);
    const raised = new Int16Array(samples.length * factor);
    samples.forEach((sample, index) => {
      for (let step = 0; step < factor; step += 1) {
        const at = index * factor + step;
        raised[at] = last + Math.round(((sample - last) * (step + 1)) / factor);
      }
      last = sample;
    });
    return raised.buffer;
  };
}
