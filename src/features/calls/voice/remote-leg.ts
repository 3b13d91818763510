// The media thread's end of a call whose socket is in the main thread. Frames go there, or for a
// page that WebRTC has a way to, to its peer; each of the two takes over from the other within one
// frame, and the session does not notice. Made by host.ts.
import type { System } from "#core/system.ts";
import type { Leg, LegEvent, LegQuality } from "#providers/carriers/port.ts";
import type { PeerEvent, WebPeer, WebPeers } from "#providers/carriers/web/port.ts";
import type { Pcm } from "#providers/speech/port.ts";
import type { FromMedia, LegSetup, PeerReport, PeerRequest } from "./protocol.ts";

interface RemoteLegOptions {
  callId: number;
  system: System;
  /** Null: there is no other way than the socket. */
  peers: WebPeers | null;
  post(message: FromMedia, transfer?: ArrayBuffer[]): void;
  publish(event: LegEvent): void;
}

export interface RemoteLeg extends Leg {
  peer(request: PeerRequest): void;
  /** The call is over. */
  close(): void;
}

/** A frame in which nobody would notice the seam; samples. */
const QUIET = 200;
/** Longer than somebody speaks without a pause: then the seam is heard. */
const QUIET_WAIT_FRAMES = 250;

/** How often the main thread hears that the page's sound comes. */
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
      // Packets leave as they come: nothing waits to be dropped.
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

/** The way to a peer, from its offer until it is lost or given up. */
class PeerPath {
  /** The frames go this way. */
  isTaken = false;
  /** The newest there is; null: no sound came or went this way. */
  quality: LegQuality | null = null;
  readonly #options: RemoteLegOptions;
  #peer: WebPeer | null = null;
  /** The page sends this way. */
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

  /** Whether the frame is sent this way. Either way one of the page's is published. */
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
      return this.#report({ kind: "refused", reason: "Here a call's sound goes over its WebSocket only." });
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
