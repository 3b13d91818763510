// One call from a page: conversation, ticket, socket, microphone and loudspeaker. Tells what happens
// by `handlers`; knows nothing of the page.

const MICROPHONE = {
  audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 },
};
const FORMAT = { encoding: "pcm_s16le", rate: 16000 };
/** More than this waiting to be sent: the network is behind, and late speech is worse than none. */
const SEND_BUFFER_BYTES_MAX = 64 * 1024;

/** A failure in words for the person at the page. */
export class CallError extends Error {}

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw new CallError(answer.error ?? answer.message ?? "The server refused the call.");
}

async function openMicrophone() {
  if (!window.isSecureContext || !navigator.mediaDevices) {
    throw new CallError("Browsers give the microphone only to pages served over https or localhost.");
  }
  try {
    return await navigator.mediaDevices.getUserMedia(MICROPHONE);
  } catch (error) {
    throw new CallError(error.name === "NotFoundError"
      ? "No microphone was found."
      : "The microphone may not be used. Allow it in the browser's settings and try again.");
  }
}

/**
 * Resolves once the call is connected.
 * @param {string} assistant uuid
 * @param {{ message(message: object): void, closed(wasOver: boolean): void }} handlers
 */
export async function startCall(assistant, handlers) {
  const microphone = await openMicrophone();
  // Within the click that began the call: browsers keep audio silent otherwise.
  const context = new AudioContext();
  const release = () => {
    for (const track of microphone.getTracks()) track.stop();
    if (context.state !== "closed") void context.close();
  };
  try {
    await context.audioWorklet.addModule("/talk/worklet.js");
    await context.resume();
    const { conversation_id: conversation } = await post("/api/conversations", {
      assistant_id: assistant, type: "widget",
    });
    const { ticket } = await post(`/api/conversations/${conversation}/call-ticket`, {});
    return connect({ conversation, ticket, context, microphone, release, handlers });
  } catch (error) {
    release();
    throw error;
  }
}

function connect({ conversation, ticket, context, microphone, release, handlers }) {
  const origin = location.origin.replace(/^http/, "ws");
  const socket = new WebSocket(`${origin}/api/conversations/${conversation}/call?ticket=${ticket}`);
  socket.binaryType = "arraybuffer";
  const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
  const playback = new AudioWorkletNode(context, "playback", { numberOfInputs: 0 });
  context.createMediaStreamSource(microphone).connect(capture);
  playback.connect(context.destination);
  let isMuted = false;
  let isReady = false;
  let isOver = false;
  const send = (message) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  };
  capture.port.onmessage = ({ data }) => {
    if (!isReady || socket.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount > SEND_BUFFER_BYTES_MAX) return;
    socket.send(isMuted ? new ArrayBuffer(data.byteLength) : data);
  };
  playback.port.onmessage = ({ data }) => send({ type: "cleared", ...data.cleared });
  socket.onopen = () => send({ type: "start", format: FORMAT });
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return playback.port.postMessage(data, [data]);
    const message = JSON.parse(data);
    if (message.type === "clear") playback.port.postMessage("clear");
    if (message.type === "ready") isReady = true;
    if (message.type === "end" || message.type === "error") isOver = true;
    handlers.message(message);
  };
  socket.onclose = () => {
    release();
    handlers.closed(isOver);
  };
  return {
    playback,
    hangUp: () => {
      isOver = true;
      send({ type: "end" });
    },
    mute: (on) => {
      isMuted = on;
    },
    press: (digit) => send({ type: "dtmf", digit }),
  };
}
