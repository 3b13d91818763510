// A person's microphone in a call: its sound goes to the server, and the call comes back, both
// through the audio thread of the talk page. Starts in a click; a broken connection is opened
// again, and `stop` frees everything it opens.
import { CLOSE_OVER, createQueue, openSocket, openSound, stayConnected } from "./sound.ts";

export type SpeakState = "connecting" | "speaking" | "lost" | "over";

interface SpeakTo {
  callId: number;
  /** Each connection needs a ticket of its own. */
  askTicket(): Promise<string>;
  /** `problem`: why speaking ended, unless the call was handed back. */
  onState(state: SpeakState, problem?: unknown): void;
}

/** Close codes from here on mean: do not reconnect. */
const CLOSE_FINAL = 4500;
/** While more than this waits to be sent, frames are dropped, as they would no longer be live. */
const BUFFERED_BYTES_MAX = 64 * 1024;

export function startSpeaking(to: SpeakTo): { stop(): void } {
  const { context, signal, follow, stop } = openSound(to.onState);
  follow(speak(to, context, signal));
  return { stop };
}

async function openMicrophone(signal: AbortSignal): Promise<MediaStream> {
  // Missing where the page did not come over https.
  const devices = navigator.mediaDevices as MediaDevices | undefined;
  if (!devices) throw new Error("This browser allows the microphone on https pages only.");
  const microphone = await devices.getUserMedia({
    audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
  }).catch((cause: unknown) => {
    throw new Error("The microphone cannot be used. Allow it in the browser and try again.", { cause });
  });
  const free = (): void => microphone.getTracks().forEach((track) => track.stop());
  signal.addEventListener("abort", free);
  if (signal.aborted) free();
  return microphone;
}

async function speak(to: SpeakTo, context: AudioContext, signal: AbortSignal): Promise<void> {
  const microphone = await openMicrophone(signal);
  await context.audioWorklet.addModule("/talk/worklet.js");
  if (signal.aborted) return;
  const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
  context.createMediaStreamSource(microphone).connect(capture);
  const playback = new AudioWorkletNode(context, "playback", { numberOfInputs: 0 });
  playback.connect(context.destination);
  await stayConnected(to, signal, (ticket) => connect(to, ticket, capture, playback, signal));
}

function connect(
  { callId, onState }: SpeakTo, ticket: string, capture: AudioWorkletNode,
  playback: AudioWorkletNode, signal: AbortSignal,
): Promise<"over" | "lost"> {
  const { promise, resolve } = Promise.withResolvers<"over" | "lost">();
  const socket = openSocket(callId, "speak", ticket);
  const queue = createQueue(playback.port);
  const close = (): void => socket.close();
  signal.addEventListener("abort", close);
  capture.port.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    const isReady = socket.readyState === WebSocket.OPEN;
    if (isReady && socket.bufferedAmount < BUFFERED_BYTES_MAX) socket.send(data);
  };
  socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
    if (typeof data === "string") onState("speaking");
    else queue.add(data);
  };
  socket.onclose = ({ code }) => {
    signal.removeEventListener("abort", close);
    queue.clear();
    resolve(code === CLOSE_OVER || code >= CLOSE_FINAL || signal.aborted ? "over" : "lost");
  };
  return promise;
}
