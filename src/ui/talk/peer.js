// The sound of a call over WebRTC, where browser, server and network allow it: packets that are
// lost are made up instead of waited for. Used by call.js, which goes on over its socket until
// this has a way, and again when it is lost.

/** From the server's answer until no way is looked for any more. */
const CONNECT_MS = 3000;
/** The server sends all the time: when nothing has come for so long, nothing will. */
const SILENT_MS = 1000;
const LOOK_MS = 200;
/** The longest that what has come may wait to be played, as far as it is believed. */
const PLAYOUT_MS_MAX = 500;

export const canPeer = () => typeof RTCPeerConnection === "function";

/**
 * `send(message)` to the server; `changed(isUp)` as soon as the page is to send by this way, or no
 * longer. What `receive` returns true for was for here.
 */
export function openPeer({ context, track, iceServers, signal, send, changed }) {
  const over = new AbortController();
  const peer = new RTCPeerConnection({ iceServers });
  let isUp = false;
  let receiver = null;
  const close = () => {
    if (over.signal.aborted) return;
    over.abort();
    peer.close();
    if (isUp) changed(false);
  };
  signal.addEventListener("abort", close, { signal: over.signal });
  peer.addEventListener("connectionstatechange", () => {
    const { connectionState } = peer;
    if (connectionState === "connected" && !isUp) {
      isUp = true;
      changed(true);
    }
    if (connectionState === "failed" || connectionState === "closed") close();
  }, { signal: over.signal });
  peer.addEventListener("track", (event) => {
    receiver = event.receiver;
    play(context, new MediaStream([event.track]), over.signal);
  }, { signal: over.signal });
  offer(peer, track, send).catch(close);
  return {
    close,
    get isUp() {
      return isUp && !over.signal.aborted;
    },
    /** The server's sound comes this way from now on. */
    watch: () => watch(receiver, over.signal, close),
    answered: (sdp) => {
      const giveUp = setTimeout(() => {
        if (!isUp) close();
      }, CONNECT_MS);
      over.signal.addEventListener("abort", () => clearTimeout(giveUp));
      peer.setRemoteDescription({ type: "answer", sdp }).catch(close);
    },
    playoutMs: () => playoutMs(receiver),
  };
}

async function offer(peer, track, send) {
  peer.addTransceiver(track, { direction: "sendrecv" });
  await peer.setLocalDescription();
  send({ type: "offer", sdp: peer.localDescription.sdp });
}

function play(context, stream, signal) {
  // Chromium gives a far stream's sound to a context only while an element plays it, too.
  const element = new Audio();
  element.muted = true;
  element.srcObject = stream;
  void element.play().catch(() => undefined);
  const source = context.createMediaStreamSource(stream);
  source.connect(context.destination);
  signal.addEventListener("abort", () => {
    source.disconnect();
    element.srcObject = null;
  });
}

function watch(receiver, signal, lost) {
  let newest = 0;
  let sinceMs = performance.now();
  const look = setInterval(() => {
    const [{ timestamp = 0 } = {}] = receiver?.getSynchronizationSources() ?? [];
    if (timestamp !== newest) sinceMs = performance.now();
    newest = timestamp;
    if (performance.now() - sinceMs > SILENT_MS) lost();
  }, LOOK_MS);
  signal.addEventListener("abort", () => clearInterval(look));
}

/** How long what has come waits until it is heard. */
async function playoutMs(receiver) {
  const reports = [...(await receiver?.getStats())?.values() ?? []];
  const { jitterBufferDelay = 0, jitterBufferEmittedCount = 0 } =
    reports.find(({ type }) => type === "inbound-rtp") ?? {};
  if (jitterBufferEmittedCount === 0) return 0;
  return Math.min(PLAYOUT_MS_MAX, (jitterBufferDelay * 1000) / jitterBufferEmittedCount);
}
