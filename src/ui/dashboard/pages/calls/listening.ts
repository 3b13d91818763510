// Listening in on a call: both sides as mixed by the server, over a socket and the audio thread of
// the talk page. Must start in a click handler, as browsers only then play sound; `stop` frees
// everything it opens.
import { CLOSE_OVER, createQueue, openSocket, openSound, stayConnected } from "./sound.ts";

export type ListenState = "connecting" | "playing" | "lost" | "over";

export interface Listening {
  /** The current level, 0 to 1. */
  level(): number;
  stop(): void;
}

interface ListenTo {
  callId: number;
  /** Each connection needs a ticket of its own. */
  askTicket(): Promise<string>;
  /** `problem`: why listening ended, unless the call itself has ended. */
  onState(state: ListenState, problem?: unknown): void;
}

/** The sample rate of the audio thread. */
const RATE = 16_000;

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

async function listen(
  to: ListenTo, context: AudioContext, out: AudioNode, signal: AbortSignal,
): Promise<void> {
  await context.audioWorklet.addModule("/talk/worklet.js");
  if (signal.aborted) return;
  const playback = new AudioWorkletNode(context, "playback", { numberOfInputs: 0 });
  playback.connect(out);
  await stayConnected(to, signal, (ticket) => play(to, ticket, playback, signal));
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
 * Raises the rate of frames of 16-bit samples by `factor`, as the audio thread needs for a
 * telephone's 8 kHz: by linear interpolation, also from one frame to the next.
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
