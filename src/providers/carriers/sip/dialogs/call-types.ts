// The signalling as the carrier sees it: an incoming call, an outgoing call, and the dialog that
// either becomes. Implemented by incoming.ts, outgoing.ts and sip-session.ts.
import type { Proof } from "./authentication.ts";
import type { SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import type { Peer } from "#providers/carriers/sip/transport/peer.ts";

/** The caller waits until `refuse` or `accept` is called; later calls have no effect. */
export interface IncomingInvite {
  readonly request: SipRequest;
  readonly peer: Peer;
  readonly callId: string;
  /** 180. */
  ring(): void;
  /**
   * When it is the first call and comes before `onInvite` returns, no state is kept: the refusal is
   * sent once, and a retransmitted INVITE is offered again.
   */
  refuse(status: number, reason?: string, headers?: [string, string][]): void;
  /**
   * Sends 200 with this SDP; after a cancel, returns a dialog that has ended. `proof` answers
   * challenges to the requests we send within the dialog.
   */
  accept(sdp: string, proof?: Proof | null): Dialog;
  /** Runs when the INVITE is cancelled or expires (Expires); no refusal is needed then. */
  onCancelled(handler: () => void): void;
}

export interface DialogEvents {
  /** The ACK came; `sdp` is its answer when our 2xx made the offer (also for a re-INVITE). */
  confirmed(sdp: string | null): void;
  /**
   * Takes a new offer; returns the answer, or a status to refuse with. With null the far end asks
   * us for an offer, and `confirmed` brings its answer.
   */
  reinvite(sdp: string | null): string | number;
  /** The answer to our last offer, which was sent again to refresh the session. */
  refreshed?(sdp: string): void;
  /** An INFO reported a key press. */
  info(dtmf: string): void;
  /** The outcome of our REFER: below 200 in progress, 2xx succeeded, anything else failed. */
  referred(status: number): void;
  /** Called once, as the last event. */
  ended(cause: DialogEnd): void;
}

/** `timeout`: no ACK, no refresh or no answer. `status`: that which ended it, or null. */
export interface DialogEnd {
  by: "far" | "us" | "timeout";
  status: number | null;
}

export interface Dialog {
  /** The far end's address. */
  readonly peerHost: string;
  /** Idempotent; `ended` by us at once, before it returns. */
  bye(): void;
  /** Asks the far end to call this URI in our place. */
  refer(to: string): void;
  setEvents(events: DialogEvents): void;
  /** Sends keys in INFO; false when the call is over or the far end does not accept them so. */
  press(keys: string): boolean;
}

export interface OutgoingCall {
  /** Idempotent; `failed` with 487 follows, even when the answer crossed it. */
  cancel(): void;
}

export interface CallEvents {
  /** A provisional response such as 180 or 183; its SDP is for early media. */
  progress(status: number, sdp: string | null): void;
  /** The ACK has been sent. Set the dialog's events here. */
  answered(dialog: Dialog, sdp: string): void;
  /**
   * Called once, instead of `answered`. 408: the INVITE got no response, or the peer could not be
   * reached; 480 with the reason `No Answer`: it rang for `ringingMs`; 487: cancelled.
   */
  failed(status: number, reason: string, q850: number | null): void;
}
