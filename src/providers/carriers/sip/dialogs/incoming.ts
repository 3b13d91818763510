// An initial INVITE, until it is refused, cancelled or answered. Made by user-agent.ts.
import type { Timer } from "#core/system.ts";
import { createAuthenticator, type Proof } from "./authentication.ts";
import { sdpOf, secondsOf, tokensOf } from "#providers/carriers/sip/grammar/bodies.ts";
import type { Dialog, IncomingInvite } from "./call-types.ts";
import { ALLOW, dialogAsCallee, setSdp, SUPPORTED, type Signalling } from "./dialog.ts";
import { earlyCall, type EarlyCall } from "./early.ts";
import { responseTo, type SipRequest, type SipResponse } from "#providers/carriers/sip/grammar/message.ts";
import { plainHost, type Peer } from "#providers/carriers/sip/transport/peer.ts";
import type { ServerTransaction } from "#providers/carriers/sip/transport/server-transactions.ts";
import { RELIABLE } from "./screening.ts";
import { Session } from "./sip-session.ts";
import { answerTerms } from "./session-timer.ts";
import { parseUri } from "#providers/carriers/sip/grammar/uri.ts";

/** Proxies time out an INVITE that gets no response for three minutes. */
const RING_AGAIN_MS = 60_000;

interface IncomingParts {
  signalling: Signalling;
  transaction: ServerTransaction;
  tag: string;
  localHost: string;
  /** Called when the final response is decided. */
  done(): void;
}

export class Incoming implements IncomingInvite {
  readonly request: SipRequest;
  readonly peer: Peer;
  readonly callId: string;
  readonly tag: string;
  readonly #parts: IncomingParts;
  readonly #contact: string;
  #state: "new" | "kept" | "refused" | "cancelled" | "accepted" = "new";
  #ringing: Timer | null = null;
  #expiry: Timer | null = null;
  #cancelled: (() => void) | null = null;

  constructor(parts: IncomingParts) {
    this.#parts = parts;
    const { transaction: { request, peer }, signalling, localHost } = parts;
    this.request = request;
    this.peer = peer;
    this.tag = parts.tag;
    this.callId = request.headers.get("Call-ID") ?? "";
    this.#contact = signalling.contact(peer, localHost, parseUri(request.uri)?.user ?? null);
  }

  /** Null when the request is for another call, or comes from another host. */
  early(callId: string, localTag: string, host: string): EarlyCall | null {
    const isThis = callId === this.callId && localTag === this.tag
      && plainHost(host) === plainHost(this.peer.host);
    return isThis ? earlyCall(this.#contact, () => this.cancel()) : null;
  }

  get #isOpen(): boolean {
    return this.#state === "new" || this.#state === "kept";
  }

  /** Called after `onInvite`: keeps an INVITE not refused by now, with a 100 unless it rings. */
  keep(): void {
    if (this.#state !== "new") return;
    this.#state = "kept";
    if (this.#ringing === null) this.#respond(responseTo(this.request, 100));
    const expiresS = secondsOf(this.request.headers, "Expires");
    if (expiresS === null || expiresS === 0) return;
    this.#expiry = this.#parts.signalling.system.after(expiresS * 1000, () => this.cancel());
  }

  ring(): void {
    if (!this.#isOpen || this.#ringing !== null) return;
    // A 180 would have to be reliable; the answer soon follows, and needs none before it.
    if (tokensOf(this.request.headers, "Require").includes(RELIABLE)) return;
    const response = responseTo(this.request, 180, undefined, this.tag);
    response.headers.add("Contact", this.#contact).add("Allow", ALLOW);
    this.#respond(response);
    this.#ringing = this.#parts.signalling.system
      .every(RING_AGAIN_MS, () => this.#respond(response));
  }

  refuse(status: number, reason?: string, headers: [string, string][] = []): void {
    if (!this.#isOpen) return;
    const response = responseTo(this.request, status, reason, this.tag);
    for (const [name, value] of headers) response.headers.add(name, value);
    const isStateless = this.#state === "new" && this.#ringing === null;
    this.#finish("refused");
    this.#respond(response);
    if (isStateless) this.#parts.transaction.drop();
  }

  accept(sdp: string, proof: Proof | null = null): Dialog {
    const { signalling, localHost, transaction } = this.#parts;
    const wasOpen = this.#isOpen;
    const terms = answerTerms(this.request.headers);
    const session = new Session({
      signalling,
      dialog: dialogAsCallee(this.request, this.tag, this.peer, localHost, this.#contact),
      authentication: createAuthenticator(signalling.system, proof),
      sdp,
      terms: terms.kind === "agreed" ? terms.terms : null,
      allow: tokensOf(this.request.headers, "Allow"),
      accept: tokensOf(this.request.headers, "Accept"),
      isCaller: false,
    });
    if (!wasOpen) {
      session.abandon({ by: "far", status: 487 });
      return session;
    }
    const response = responseTo(this.request, 200, undefined, this.tag);
    response.headers.add("Contact", this.#contact).add("Allow", ALLOW).add("Supported", SUPPORTED);
    if (terms.kind === "agreed") {
      for (const [name, value] of terms.headers) response.headers.add(name, value);
    }
    setSdp(response, sdp);
    this.#finish("accepted");
    const wantsSdp = sdpOf(this.request) === null;
    session.promise(this.request, response, (it) => transaction.respond(it), wantsSdp);
    return session;
  }

  onCancelled(handler: () => void): void {
    this.#cancelled = handler;
    if (this.#state === "cancelled") handler();
  }

  /** CANCEL or BYE came, or the caller's time limit passed. */
  cancel(): void {
    if (!this.#isOpen) return;
    this.#finish("cancelled");
    this.#respond(responseTo(this.request, 487, undefined, this.tag));
    this.#cancelled?.();
  }

  #finish(state: "refused" | "cancelled" | "accepted"): void {
    this.#state = state;
    this.#ringing?.cancel();
    this.#expiry?.cancel();
    this.#parts.done();
  }

  #respond(response: SipResponse): void {
    this.#parts.transaction.respond(response);
  }
}
