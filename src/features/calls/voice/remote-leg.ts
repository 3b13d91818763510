// The media thread's end of a call whose socket is in the main thread. Frames go to that socket, or
// over WebRTC to a page that can be reached so; either path takes over from the other within one
// frame, unnoticed by the session. Made by host.ts.
import type { System } from "#core/system.ts";
import type { Leg, LegEvent, LegQuality } from "#providers/carriers/port.ts";
import type { PeerEvent, WebPeer, WebPeers } from "#providers/carriers/web/port.ts";
import type { Pcm } from "#providers/speech/port.ts";
import type { FromMedia, LegSetup, PeerReport, PeerRequest } from "./protocol.ts";

interface RemoteLegOptions {
  callId: number;
  system: System;
  /** Null: there is no path but the socket. */
  peers: WebPeers | null;
  post(message: FromMedia, transfer?: ArrayBuffer[]): void;
  publish(event: LegEvent): void;
}

export interface RemoteLeg extends Leg {
  peer(request: PeerRequest): void;
  /** The call is over. */
  close(): void;
}

/** A frame with all samples below this is quiet enough to hide the change of paths. */
const QUIET = 200;
/** Longer than anybody speaks without a pause; after that the change may be heard. */
const QUIET_WAIT_FRAMES = 250;

/** How often the main thread is told that the page's sound arrives. */
const HEARD_MS = 1000;

const isQuiet = (frame: Pcm): boolean => frame.every((sample) => Math.abs(sample) < QUIET);

export function createRemoteLeg(
  options: RemoteLegOptions, { rate, hasLine }: Extract<LegSetup, { kind: "remote" }>,
): RemoteLeg {
  const { callId, post, publish } = options;
  const path = new PeerPath(options);
  return {
    rate,
    transfer: hasLine ? (to) => post({ kind: "transfer", callId, to }) : null,
    send: (frame) => {
      if (path.take(frame)) return;
      const pcm = frame.slice();
      post({ kind: "frame", callId, pcm }, [pcm.buffer]);
    },
    clear: () => {
      // Packets are sent as they come: nothing is queued that could be dropped.
      if (path.isTaken) publish({ kind: "cleared", droppedMs: 0 });
      else post({ kind: "clear", callId });
    },
    mark: () => post({ kind: "mark", callId }),
    sendDtmf: (digits) => {
      if (hasLine) post({ kind: "dtmf", callId, digits });
    },
    // The main thread closes the socket when it receives `over`.
    hangUp: () => publish({ kind: "ended", cause: "we_hung_up" }),
    quality: () => path.quality,
    peer: (request) => path.receive(request),
    close: () => path.close(),
  };
}

/** The path to a peer, from its offer until it is lost or closed. */
class PeerPath {
  /** Our frames are sent over this path. */
  isTaken = false;
  /** The newest figures; null: no sound came or went over this path. */
  quality: LegQuality | null = null;
  readonly #options: RemoteLegOptions;
  #peer: WebPeer | null = null;
  /** The page sends over this path. */
  #isUsed = false;
  #waitedFrames = 0;
  #toldMs = -Infinity;

  constructor(options: RemoteLegOptions) {
    this.#options = options;
  }

  receive(request: PeerRequest): void {
    if (request.kind === "offer") return this.#answer(request.sdp);
    if (request.path === "socket" || !this.#peer) return this.#leave();
    this.#isUsed = true;
    this.#waitedFrames = 0;
  }

  /** Whether the frame is sent over this path. In use, the page's sound is published either way. */
  take(frame: Pcm): boolean {
    if (!this.#isUsed) return false;
    this.#waitedFrames += 1;
    if (!this.isTaken && (isQuiet(frame) || this.#waitedFrames > QUIET_WAIT_FRAMES)) {
      this.isTaken = true;
      this.#report({ kind: "path", path: "peer" });
    }
    this.#peer?.send(this.isTaken ? frame : null);
    return this.isTaken;
  }

  close(): void {
    this.#peer?.close();
    this.#peer = null;
    this.#isUsed = false;
    this.isTaken = false;
  }

  #answer(sdp: string): void {
    const { peers } = this.#options;
    this.close();
    if (!peers) {
      const reason = "This server offers no WebRTC: the audio of calls goes over the WebSocket.";
      return this.#report({ kind: "refused", reason });
    }
    const peer = peers.open(sdp, (event) => {
      if (this.#peer === peer) this.#happened(event);
    });
    this.#peer = peer;
  }

  #happened(event: PeerEvent): void {
    switch (event.kind) {
      case "audio":
        if (this.#isUsed) this.#hear(event);
        return;
      case "quality":
        this.quality = event.quality;
        return;
      case "answer":
        return this.#report(event);
      case "refused":
        this.#peer = null;
        return this.#report(event);
      case "lost":
        return this.#leave();
    }
  }

  #hear(event: LegEvent): void {
    this.#options.publish(event);
    const nowMs = this.#options.system.monotonicMs();
    if (nowMs - this.#toldMs < HEARD_MS) return;
    this.#toldMs = nowMs;
    this.#report({ kind: "heard" });
  }

  #leave(): void {
    this.close();
    this.#report({ kind: "path", path: "socket" });
  }

  #report(report: PeerReport): void {
    this.#options.post({ kind: "peer", callId: this.#options.callId, report });
  }
}
