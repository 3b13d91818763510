// One call from a page: conversation, ticket, socket, microphone and loudspeaker. Reports to
// `handlers` and knows nothing of the page. One signal frees everything it opens. Used unbundled by
// the talk page, and bundled for the chat widget on other people's pages.

import { canHear, startHearing } from "./hearing.js";
import { canPeer, openPeer } from "./peer.js";

const MICROPHONE = {
  audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 },
};
const FORMAT = { encoding: "pcm_s16le", rate: 16000 };
/** Frames are dropped while more than this waits to be sent: late speech is worse than none. */
const SEND_BUFFER_BYTES_MAX = 64 * 1024;
/** Packets are still heard for this long after the last one has arrived. */
const PEER_TAIL_MS = 300;
/**
 * A lost WebRTC path is offered again after this long; the server accepts no more offers than this.
 */
const PEER_AGAIN_MS = 5000;
const PEER_OFFERS_MAX = 3;

/** Sound that is not running after this long is reported. */
const SOUND_LATEST_MS = 3000;

/**
 * The server answers every ping: after so many without an answer the caller is told, and then the
 * call is lost.
 */
const PING_MS = 2000;
const PINGS_UNTIL_TOLD = 3;
const PINGS_UNTIL_LOST = 15;

/** What a call is doing, in words. */
export const STATES = {
  connecting: "Connecting…",
  listening: "Listening",
  thinking: "Thinking…",
  speaking: "Speaking",
};
/** Why a call ended, where that is not plain. */
export const REASONS = {
  balance: "The call ended because the account's balance is used up.",
  speech_failed: "The call ended because speech does not work at the moment.",
  model_failed: "The call ended because the assistant cannot answer at the moment.",
  server_restarted: "The call ended because the server was restarted.",
  silence: "The call ended because nobody spoke.",
  no_first_words: "The call ended because nobody spoke.",
  max_duration: "The call reached its maximum duration.",
};

/**
 * Shown to callers before the call, and while something other than the server recognizes speech.
 */
export const HEARINGS = {
  server: "Your microphone is used during the call only.",
  browser: "In this call your browser understands what you say. It may send it to the browser's maker.",
  typed: "Neither the server nor your browser understands speech here. You type, and hear the answers.",
};
/** Why there is no call, or what is wrong with one; the chat widget has them in other languages. */
export const PROBLEMS = {
  deaf: "Your browser's speech recognition does not work here. You can type instead.",
  forbidden: "The call could not be started on this page.",
  refused: "The server refused the call.",
  insecure: "Browsers give the microphone only to pages served over https or localhost.",
  no_microphone: "No microphone was found.",
  microphone_taken: "The microphone is used by another program or does not work.",
  microphone_refused:
    "The microphone may not be used. Allow it in the browser's settings and try again.",
  page_left: "The call ended when the page was left.",
  not_started: "The call could not be started.",
  microphone_silenced: "This device has silenced the microphone.",
  sound_paused: "This device has paused the sound.",
  sound_lost: "Some of what was said could not be played.",
  cut_off: "The connection is interrupted. The call continues when it is back.",
  lost: "The connection was lost.",
  not_connected: "The call could not be connected.",
  microphone_lost: "The call ended because the microphone was disconnected.",
};

/**
 * Who will recognize the speech, as far as is known before the call; `settings` are the widget's.
 */
export const hearingOf = (settings) =>
  settings.hears === false ? (canHear() ? "browser" : "typed") : "server";

/** A failure in words for the person at the page. */
class CallError extends Error {
  /** @param {"" | "microphone" | "forbidden"} [cause] what another page might be allowed */
  constructor(message, cause = "") {
    super(message);
    this.cause = cause;
  }
}

async function post(url, body, signal) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw new CallError(answer.error ?? answer.message ?? PROBLEMS.refused);
}

async function openMicrophone(signal) {
  if (!window.isSecureContext || !navigator.mediaDevices) {
    throw new CallError(PROBLEMS.insecure, "forbidden");
  }
  let microphone;
  try {
    microphone = await navigator.mediaDevices.getUserMedia(MICROPHONE);
  } catch (error) {
    if (error.name === "NotFoundError") throw new CallError(PROBLEMS.no_microphone);
    if (error.name === "NotReadableError") {
      throw new CallError(PROBLEMS.microphone_taken);
    }
    throw new CallError(PROBLEMS.microphone_refused, "microphone");
  }
  const free = () => microphone.getTracks().forEach((track) => track.stop());
  signal.addEventListener("abort", free);
  // The permission prompt cannot be cancelled: after a hang-up its microphone is released.
  if (signal.aborted) free();
  signal.throwIfAborted();
  return microphone;
}

/**
 * Call this in the click handler itself: browsers play only sound that starts there. Types:
 * call.d.ts.
 */
export function startCall(assistant, handlers, given = {}) {
  const over = new AbortController();
  const { signal } = over;
  const finish = (problem, cause = "") => {
    if (signal.aborted) return;
    over.abort();
    handlers.closed(problem, cause);
  };
  const { origin = location.origin } = given;
  const context = openContext(signal, given.context ?? new AudioContext());
  const conversation = given.conversation ?? (() => createConversation(assistant, origin, signal));
  const { hearing = "server", language = "en" } = given;
  const call = {
    origin, conversation, context, signal, finish, handlers, hearing, language,
    isMuted: false, isCutOff: false, microphone: null, socket: null, peer: null, offers: 0,
  };
  window.addEventListener("pagehide", () =>
    finish(PROBLEMS.page_left), { signal });
  connect(call).catch((error) => error instanceof CallError
    ? finish(error.message, error.cause)
    : finish(PROBLEMS.not_started));
  return {
    hangUp: () => finish(""),
    mute: (on) => {
      call.isMuted = on;
      applyMute(call);
    },
    press: (digit) => send(call.socket, { type: "dtmf", digit }),
    say: (text) => send(call.socket, { type: "words", text, final: true }),
  };
}

function openContext(signal, context) {
  // Fails only for a context that is closed, whose call is over.
  const wake = () => void context.resume().catch(() => undefined);
  wake();
  document.addEventListener("visibilitychange", wake, { signal });
  signal.addEventListener("abort", () => void context.close());
  return context;
}

function applyMute({ microphone, isMuted }) {
  for (const track of microphone?.getAudioTracks() ?? []) track.enabled = !isMuted;
}

function send(socket, message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

async function createConversation(assistant, origin, signal) {
  const { conversation_id: conversation } = await post(`${origin}/api/conversations`, {
    assistant_id: assistant, type: "widget",
  }, signal);
  return conversation;
}

async function connect(call) {
  const { context, signal, origin } = call;
  // Before the microphone: where a page's policy forbids calls, nobody is asked for it.
  await context.audioWorklet?.addModule(`${origin}/talk/worklet.js`).catch(() => {
    throw new CallError(PROBLEMS.forbidden, "forbidden");
  });
  signal.throwIfAborted();
  if (call.hearing !== "typed") {
    call.microphone = await openMicrophone(signal);
    applyMute(call);
  }
  call.publish = watchSound(call);
  const path = `/api/conversations/${await call.conversation()}`;
  const { ticket } = await post(`${origin}${path}/call-ticket`, {}, signal);
  signal.throwIfAborted();
  const socketOrigin = origin.replace(/^http/, "ws");
  // Fires before the socket's own error, which gives no reason.
  document.addEventListener("securitypolicyviolation", ({ blockedURI }) => {
    if (blockedURI.startsWith(socketOrigin)) call.finish(PROBLEMS.forbidden, "forbidden");
  }, { signal });
  call.socket = new WebSocket(`${socketOrigin}${path}/call?ticket=${ticket}`);
  signal.addEventListener("abort", () => call.socket.close());
  talk(call);
}

/** Devices take sound away from pages: a headset is unplugged, a telephone call comes in. */
function watchSound(call) {
  const { context, microphone, signal, finish, handlers } = call;
  const track = microphone?.getAudioTracks()[0];
  const publish = () => {
    if (call.isCutOff) return handlers.notice(PROBLEMS.cut_off);
    if (track?.muted) return handlers.notice(PROBLEMS.microphone_silenced);
    handlers.notice(context.state === "running" ? "" : PROBLEMS.sound_paused);
  };
  context.addEventListener("statechange", publish, { signal });
  // No event reports sound that never starts, as without an output device.
  setTimeout(() => {
    if (!signal.aborted && context.state !== "running") publish();
  }, SOUND_LATEST_MS);
  track?.addEventListener("mute", publish, { signal });
  track?.addEventListener("unmute", publish, { signal });
  track?.addEventListener("ended", () => finish(PROBLEMS.microphone_lost), { signal });
  return publish;
}

/**
 * A network that drops everything does not close the socket for a quarter of an hour. Pings are
 * counted, not time: a page that was suspended has sent none.
 */
function watchConnection(call) {
  const { socket, signal, finish } = call;
  let unanswered = 0;
  const tell = (isCutOff) => {
    if (call.isCutOff === isCutOff) return;
    call.isCutOff = isCutOff;
    call.publish();
  };
  socket.addEventListener("message", () => {
    unanswered = 0;
    tell(false);
  }, { signal });
  const pinging = setInterval(() => {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (unanswered >= PINGS_UNTIL_LOST) return finish(PROBLEMS.lost);
    tell(unanswered >= PINGS_UNTIL_TOLD);
    unanswered += 1;
    send(socket, { type: "ping" });
  }, PING_MS);
  signal.addEventListener("abort", () => clearInterval(pinging));
}

/** The sound for the server: silence without a microphone, since a call runs in real time. */
function sourceOf({ context, microphone }) {
  if (microphone) return context.createMediaStreamSource(microphone);
  const silence = new ConstantSourceNode(context, { offset: 0 });
  silence.start();
  return silence;
}

/** For calls whose speech the server does not recognize: the browser does, or the caller types. */
function hearHere(call) {
  const { language, microphone, signal, handlers } = call;
  startHearing({
    language, signal,
    track: microphone.getAudioTracks()[0],
    words: (text, isFinal) => {
      if (!call.isMuted) send(call.socket, { type: "words", text, final: isFinal });
    },
    failed: () => {
      handlers.notice(PROBLEMS.deaf);
      handlers.typed();
    },
  });
}

/**
 * Tries to move the sound to WebRTC, which is optional: without it the socket carries the sound.
 */
function findPeer(call, offered) {
  const { context, microphone, signal, socket } = call;
  if (!microphone || !canPeer() || signal.aborted || call.offers === PEER_OFFERS_MAX) return;
  call.offers += 1;
  try {
    call.peer = openPeer({
      context, signal,
      iceServers: offered.ice_servers,
      track: microphone.getAudioTracks()[0],
      send: (message) => send(socket, message),
      changed: (isUp) => {
        send(socket, { type: "path", path: isUp ? "peer" : "socket" });
        if (!isUp) setTimeout(() => findPeer(call, offered), PEER_AGAIN_MS);
      },
    });
  } catch {
    call.peer = null;
  }
}

/** Handles the server's messages about the WebRTC path. */
function followPeer({ peer }, { type, sdp, path }) {
  if (type === "answer") peer?.answered(sdp);
  if (type === "path" && path === "peer") peer?.watch();
  if (type === "path" && path === "socket") peer?.close();
}

/** Answers a mark once the packets before it have been heard. */
async function answerMark({ peer, socket }, name) {
  const ms = await peer.playoutMs().catch(() => 0);
  setTimeout(() => send(socket, { type: "mark", name }), ms);
}

function talk(call) {
  const { context, microphone, socket, signal, finish, handlers, hearing } = call;
  // One channel, whichever channel of a stereo microphone is spoken into. Connected to the
  // loudspeaker, where it is silent, because not every browser runs a node that leads nowhere.
  const capture = new AudioWorkletNode(context, "capture", {
    channelCount: 1, channelCountMode: "explicit",
  });
  sourceOf(call).connect(capture).connect(context.destination);
  const playback = new AudioWorkletNode(context, "playback", { numberOfInputs: 0 });
  playback.connect(context.destination);
  let isReady = false;
  let isEnded = false;
  /** True while the server's sound comes over WebRTC. */
  let isByPeer = false;
  let refusal = PROBLEMS.not_connected;
  capture.port.onmessage = ({ data }) => {
    if (!isReady || isEnded || socket.readyState !== WebSocket.OPEN || call.peer?.isUp) return;
    if (socket.bufferedAmount <= SEND_BUFFER_BYTES_MAX) socket.send(data);
  };
  playback.port.onmessage = ({ data: { kind, ...counts } }) => {
    if (kind === "cleared") send(socket, { type: "cleared", ...counts });
    if (kind === "heard") send(socket, { type: "mark", ...counts });
    if (kind === "lost") handlers.notice(PROBLEMS.sound_lost);
    if (kind === "drained") finish("");
  };
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", () =>
    send(socket, {
      type: "start", format: FORMAT, ...(hearing === "server" ? {} : { hearing }),
    }), { signal });
  socket.addEventListener("message", ({ data }) => {
    if (typeof data !== "string") return playback.port.postMessage(data, [data]);
    const message = JSON.parse(data);
    if (message.type === "clear") playback.port.postMessage("clear");
    if (message.type === "mark" && isByPeer) void answerMark(call, message.name);
    else if (message.type === "mark") playback.port.postMessage({ mark: message.name });
    if (message.type === "path") isByPeer = message.path === "peer";
    followPeer(call, message);
    if (message.type === "ready") watchConnection(call);
    if (message.type === "ready") isReady = true;
    if (message.type === "ready" && message.webrtc) findPeer(call, message.webrtc);
    if (message.type === "ready" && message.hearing === "browser") hearHere(call);
    if (message.type === "ready" && message.hearing === "typed") handlers.typed();
    if (message.type === "error" && !isReady) refusal = message.error;
    if (message.type === "end") isEnded = true;
    handlers.message(message);
    if (!isEnded) return;
    // The last words were sent but are still being played.
    if (context.state !== "running") return finish("");
    for (const track of microphone?.getTracks() ?? []) track.stop();
    if (isByPeer) setTimeout(() => finish(""), PEER_TAIL_MS);
    else playback.port.postMessage("drain");
  }, { signal });
  const lost = () => {
    if (!isEnded) finish(isReady ? PROBLEMS.lost : refusal);
  };
  socket.addEventListener("close", lost, { signal });
  // Chromium reports a socket that a policy forbids only as an error.
  socket.addEventListener("error", lost, { signal });
}
