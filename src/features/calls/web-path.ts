// WebRTC signalling between a page and the server, beside a web call's sound: the offer, its
// answer, and over which path each side sends from now on. The path is in voice/remote-leg.ts.
import { Fault } from "#core/faults.ts";
import type { PeerReport, PeerRequest, SoundPath } from "./voice/protocol.ts";

/** An offer of only sound has a third of this. */
export const SDP_CHARS_MAX = 16_384;
/** One offer, and further ones after the path was lost. */
const OFFERS_PER_CALL_MAX = 3;

/** A STUN or TURN server, as browsers take it. */
export interface IceServer {
  urls: string[];
  username?: string;
  credential?: string;
}

interface WebPath {
  /** The page's sound comes over WebRTC: sound from its socket is ignored. */
  readonly isPeer: boolean;
  /** The call has begun; returns what the page has to know for WebRTC. */
  start(toLeg: (request: PeerRequest) => void): { webrtc?: { ice_servers: IceServer[] } };
  offer(sdp: string): void;
  change(path: SoundPath): void;
  report(report: Exclude<PeerReport, { kind: "heard" }>): void;
}

/** `iceServers` null: there is no path but the socket. */
export function createWebPath(
  iceServers: (() => IceServer[]) | null, post: (message: object) => void,
): WebPath {
  let toLeg: ((request: PeerRequest) => void) | null = null;
  let path: SoundPath = "socket";
  let offers = 0;
  const send = (request: PeerRequest): void => {
    if (!toLeg) throw new Fault(409, "The call has not begun. Send the offer once it is in progress.");
    toLeg(request);
  };
  return {
    get isPeer() {
      return path === "peer";
    },
    start: (next) => {
      toLeg = next;
      return iceServers ? { webrtc: { ice_servers: iceServers() } } : {};
    },
    offer: (sdp) => {
      if (!iceServers) {
        throw new Fault(422, "This server offers no WebRTC: the audio of calls goes over the"
          + " WebSocket.");
      }
      offers += 1;
      if (offers > OFFERS_PER_CALL_MAX) {
        throw new Fault(429, "The call has had too many offers. It continues over its WebSocket.");
      }
      send({ kind: "offer", sdp });
    },
    change: (next) => {
      send({ kind: "path", path: next });
      path = next;
    },
    report: (report) => {
      if (report.kind === "refused") return post({ type: "error", status: 422, error: report.reason });
      const { kind: type, ...rest } = report;
      post({ type, ...rest });
    },
  };
}
