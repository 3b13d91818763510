// What the carrier sees of the signalling: a call offered, a call placed, and the dialog both
// become. Implemented by incoming.ts, outgoing.ts and sip-session.ts.
import type { Proof } from "./authentication.ts";
import type { SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import type { Peer } from "#providers/carriers/sip/transport/peer.ts";

/** The caller waits until one of `refuse` and `accept` was called; what follows does nothing. */
export interface IncomingInvite {
  readonly request: SipRequest;
  readonly peer: Peer;
  readonly callId: string;
  /** 180. */
  ring(): void;
  /**
   * Called before `onInvite` returns and before anything else, nothing is kept of the INVITE: the
   * refusal is sent once, and an INVITE that comes again is offered again.
   */
  refuse(status: number, reason?: string, headers?: [string, string][]): void;
  /**
   * 200 with this SDP; after a cancel the dialog is one that has ended. With a proof
   * challenges to what we send in it are answered.
   */
  accept(sdp: string, proof?: Proof | null): Dialog;
  /** Nobody needs to refuse it any more. Also when the caller's own time limit passed. */
  onCancelled(handler: () => void): void;
}

export interface DialogEvents {
  /** The ACK came; its SDP only where ours was the offer (also in a later re-INVITE). */
  confirmed(sdp: string | null): void;
  /**
   * A new offer: the answer, or a status to refuse with. Null: they ask for an offer, whose answer
   * `confirmed` brings.
   */
  reinvite(sdp: string | null): string | number;
  /** The answer to the offer made last, which was made again to refresh the session. */
  refreshed?(sdp: string): void;
  /** A key pressed, as INFO reports it. */
  info(dtmf: string): void;
  /** What became of our REFER: below 200 under way, 2xx went through, else failed. */
  referred(status: number): void;
  /** Once; nothing follows. */
  ended(cause: DialogEnd): void;
}

/** `timeout`: no ACK, no refresh or no answer. Status of what ended it, where something did. */
export interface DialogEnd {
  by: "far" | "us" | "timeout";
  status: number | null;
}

export interface Dialog {
  /** The address it was begun with. */
  readonly peerHost: string;
  /** Idempotent; `ended` by us at once, before it returns. */
  bye(): void;
  /** Asks the far end to call this URI in our place. */
  refer(to: string): void;
  setEvents(events: DialogEvents): void;
  /** Presses keys in INFO; false: over, or the far end has not said that it takes them so. */
  press(keys: string): boolean;
}

export interface OutgoingCall {
  /** Idempotent; `failed` with 487 follows, even when the answer crossed it. */
  cancel(): void;
}

export interface CallEvents {
  /** 180, 183 and their like; the SDP is early media. */
  progress(status: number, sdp: string | null): void;
  /** The ACK has been sent. Set the dialog's events here. */
  answered(dialog: Dialog, sdp: string): void;
  /**
   * Once, instead of `answered`. 408: nobody answered the INVITE, or the peer could not be
   * reached; 480 with the reason `No Answer`: it rang as long as it was to; 487: cancelled.
   */
  failed(status: number, reason: string, q850: number | null): void;
}
