// The sound of a call over WebRTC, where browser, server and network allow it: lost packets are
// concealed instead of waited for. Used by call.js, which keeps to its socket until this connects,
// and returns to it when this is lost.

/** How long after the server's answer the connection may take. */
const CONNECT_MS = 3000;
/** The server sends all the time: after so long without a packet the connection counts as lost. */
const SILENT_MS = 1000;
const LOOK_MS = 200;
/** The highest playout delay that is believed. */
const PLAYOUT_MS_MAX = 500;

export const canPeer = () => typeof RTCPeerConnection === "function";

/**
 * `send(message)` sends to the server; `changed(isUp)` is called as soon as the page is to send
 * over this connection, or no longer.
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
  // Chromium feeds a remote stream into a context only while an element plays it, too.
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

/** The mean delay of the jitter buffer. */
async function playoutMs(receiver) {
  const reports = [...(await receiver?.getStats())?.values() ?? []];
  const { jitterBufferDelay = 0, jitterBufferEmittedCount = 0 } =
    reports.find(({ type }) => type === "inbound-rtp") ?? {};
  if (jitterBufferEmittedCount === 0) return 0;
  return Math.min(PLAYOUT_MS_MAX, (jitterBufferDelay * 1000) / jitterBufferEmittedCount);
}
