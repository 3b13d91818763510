// A call we place: the INVITE with its challenges and retries, failover to the next address when
// the first does not respond, CANCEL, and the 2xx responses, which may be several when a proxy
// forked the call to several telephones.
import type { Timer } from "#core/system.ts";
import {
  createAuthenticator, proofAt, type Authentication, type Authenticator, type Credentials,
} from "./authentication.ts";
import { q850Of, sdpOrNull, secondsOf, tokensOf } from "#providers/carriers/sip/grammar/bodies.ts";
import type { CallEvents, OutgoingCall } from "./call-types.ts";
import { sameTransaction, type ClientTransaction } from "#providers/carriers/sip/transport/client-transactions.ts";
import {
  ALLOW, dialogAsCaller, requestWithin, setSdp, SUPPORTED, tagOf, type Signalling,
} from "./dialog.ts";
import { earlyCall, type EarlyCall } from "./early.ts";
import {
  formatNameAddr, parseNameAddr, SipHeaders,
} from "#providers/carriers/sip/grammar/headers.ts";
import {
  REASONS, type SipRequest, type SipResponse,
} from "#providers/carriers/sip/grammar/message.ts";
import type { Peer } from "#providers/carriers/sip/transport/peer.ts";
import { Session } from "./sip-session.ts";
import { offerTerms, termsOfResponse } from "./session-timer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";
import { newTag } from "#providers/carriers/sip/transport/transactions.ts";
import { parseUri } from "#providers/carriers/sip/grammar/uri.ts";

export interface CallRequest {
  peer: Peer;
  /** Addresses to try next, best first, as long as no telephone can have been reached. */
  others?: readonly Peer[];
  /** Receives an address that did not respond, when the call goes on to the next. */
  silent?(peer: Peer): void;
  uri: string;
  /** Addresses, bare or with a name. */
  from: string;
  to: string;
  /** The offer; a function when it names our address, which it receives as the peer sees it. */
  sdp: string | ((localHost: string) => string);
  /** Offered once more, where the first is not acceptable (488, 606). */
  otherSdp?: ((localHost: string) => string) | undefined;
  credentials: Credentials | null;
  headers?: [string, string][];
  /** How long an unanswered call rings before it is cancelled. */
  ringingMs: number;
}

const UNAVAILABLE = 503;
const NOT_ACCEPTABLE = new Set([488, 606]);
/** After these no telephone rings: a proxy is there, asks for credentials, or is unavailable. */
const NOBODY_YET = new Set([100, 401, 407, UNAVAILABLE]);

/** The call's attempt at one address. */
interface Hop {
  readonly peer: Peer;
  readonly localHost: string;
  readonly sdp: string;
  transaction: ClientTransaction | null;
  isProvisional: boolean;
  /** Set once a CANCEL is sent; ends the transaction when no final response comes. */
  patience: Timer | null;
}

const newHop = (peer: Peer, localHost: string, sdp: string): Hop =>
  ({ peer, localHost, sdp, transaction: null, isProvisional: false, patience: null });

export class Outgoing implements OutgoingCall {
  readonly #signalling: Signalling;
  readonly #args: CallRequest;
  readonly #events: CallEvents;
  readonly #done: () => void;
  readonly #authentication: Authentication;
  readonly #authenticator: Authenticator;
  readonly #callId: string;
  readonly #from: string;
  #isOver = false;
  /** Nobody waits for the answer any more; if it still comes, the call is hung up. */
  #isCancelled = false;
  #cseq = 1;
  #minSeS: number = LIMITS.sessionExpiresMinS;
  #otherSdp: CallRequest["otherSdp"];
  readonly #begunMs: number;
  /** Empty as soon as a telephone may ring or has been asked: two calls must never be placed. */
  #others: readonly Peer[];
  /** The current attempt; earlier ones were abandoned. */
  #hop: Hop | null = null;
  #ringing: Timer | null = null;
  /** Runs until an address that does not respond is abandoned. */
  #silence: Timer | null = null;
  /** Early-media SDP, and how to acknowledge again, both keyed by the far end's tag. */
  readonly #early = new Map<string, string>();
  readonly #acknowledged = new Map<string, () => void>();

  constructor(signalling: Signalling, args: CallRequest, events: CallEvents, done: () => void) {
    const { system } = signalling;
    this.#signalling = signalling;
    this.#args = args;
    this.#events = events;
    this.#done = done;
    this.#otherSdp = args.otherSdp;
    this.#authentication = createAuthenticator(
      system, proofAt(args.credentials, [args.peer, ...args.others ?? []]));
    this.#authenticator = this.#authentication.begin();
    this.#begunMs = system.monotonicMs();
    this.#others = (args.others ?? []).slice(0, LIMITS.hopsMax - 1);
    this.#callId = `${system.uuid()}`;
    const from = parseNameAddr(args.from) ?? { display: null, uri: args.from, params: new Map() };
    from.params.set("tag", newTag(system));
    this.#from = formatNameAddr(from);
  }

  /** Null when the request is for another call. */
  early(callId: string, localTag: string): EarlyCall | null {
    const isThis = callId === this.#callId && localTag === tagOf(this.#from);
    return this.#hop && isThis ? earlyCall(this.#contactAt(this.#hop)) : null;
  }

  async begin(): Promise<void> {
    this.#ringing = this.#signalling.system.after(this.#args.ringingMs, () => {
      this.#giveUp(480, "No Answer");
    });
    await this.#enter(this.#args.peer);
  }

  cancel(): void {
    this.#giveUp(487, REASONS[487] ?? "");
  }

  /** Reports the failure at once; the CANCEL to the far end completes in the background. */
  #giveUp(status: number, reason: string): void {
    if (this.#isOver) return;
    this.#isCancelled = true;
    // Before a provisional response a CANCEL must not be sent (RFC 3261 9.1).
    if (this.#hop?.isProvisional) this.#sendCancel(this.#hop);
    this.#fail(status, reason);
  }

  async #enter(peer: Peer): Promise<void> {
    const { sdp } = this.#args;
    let localHost: string;
    try {
      localHost = await this.#signalling.localHost(peer);
    } catch (error) {
      this.#signalling.log.info({ cause: String(error) }, "could not reach the SIP peer");
      if (!this.#leave(peer)) this.#fail(408, "Unreachable");
      return;
    }
    if (this.#isOver) return;
    const hop = newHop(peer, localHost, typeof sdp === "string" ? sdp : sdp(localHost));
    this.#hop = hop;
    this.#invite(hop);
    if (this.#others.length === 0) return;
    const patientMs = peer.transport === "udp" ? LIMITS.hopMs : LIMITS.hopStreamMs;
    this.#silence = this.#signalling.system.after(patientMs, () => void this.#leave(peer));
  }

  /** Goes on to the next address, because this one does not respond; false when there is none. */
  #leave(peer: Peer): boolean {
    const goesOn = this.#goOn();
    if (goesOn) this.#args.silent?.(peer);
    return goesOn;
  }

  /**
   * Sends the call to the next address (RFC 3263 4.3); false when there is none. Responses of the
   * abandoned address are still handled for as long as the call may ring.
   */
  #goOn(): boolean {
    const [next, ...others] = this.#others;
    if (this.#isOver || next === undefined) return false;
    this.#silence?.cancel();
    this.#others = others;
    this.#hop?.transaction?.hush(this.#args.ringingMs + LIMITS.transactionMs);
    this.#hop = null;
    this.#signalling.log.info({ host: next.host }, "trying a SIP call's next address");
    void this.#enter(next);
    return true;
  }

  #contactAt({ peer, localHost }: Hop): string {
    const { from } = this.#args;
    const user = parseUri(parseNameAddr(from)?.uri ?? from)?.user ?? null;
    return this.#signalling.contact(peer, localHost, user);
  }

  #invite(hop: Hop): void {
    const { args, from } = { args: this.#args, from: this.#from };
    const { system } = this.#signalling;
    const leftMs = this.#begunMs + args.ringingMs - system.monotonicMs();
    const to = parseNameAddr(args.to) ?? { display: null, uri: args.to, params: new Map() };
    const headers = new SipHeaders();
    headers.add("Max-Forwards", "70")
      .add("From", from)
      .add("To", formatNameAddr(to))
      .add("Call-ID", this.#callId)
      .add("CSeq", `${this.#cseq} INVITE`)
      .add("Contact", this.#contactAt(hop))
      .add("Allow", ALLOW)
      .add("Supported", SUPPORTED)
      .add("Expires", String(Math.max(1, Math.ceil(leftMs / 1000))));
    offerTerms(headers, null, this.#minSeS);
    for (const [name, value] of args.headers ?? []) headers.add(name, value);
    const request: SipRequest = {
      kind: "request", method: "INVITE", uri: args.uri, headers, body: Buffer.alloc(0),
    };
    setSdp(request, hop.sdp);
    this.#authenticator.prepare(request, hop.peer);
    hop.isProvisional = false;
    hop.transaction = this.#signalling.begin(request, hop.peer, hop.localHost, {
      response: (response) => this.#received(hop, request, response),
      failed: (why) => {
        this.#signalling.log.info({ host: hop.peer.host, why }, "the SIP peer does not answer");
        if (this.#leave(hop.peer)) return;
        this.#fail(408, why === "timeout" ? "Request Timeout" : "Unreachable");
      },
    });
  }

  #received(hop: Hop, invite: SipRequest, response: SipResponse): void {
    if (hop === this.#hop) this.#silence?.cancel();
    if (!NOBODY_YET.has(response.status)) this.#others = [];
    if (response.status < 200) this.#progressed(hop, response);
    else if (response.status < 300) this.#accepted(hop, invite, response);
    else this.#refused(hop, response);
  }

  #progressed(hop: Hop, response: SipResponse): void {
    const isFirst = !hop.isProvisional;
    const isGivenUp = hop !== this.#hop;
    hop.isProvisional = true;
    if ((this.#isCancelled || isGivenUp) && isFirst) return this.#sendCancel(hop);
    if (this.#isOver || isGivenUp || response.status === 100) return;
    const sdp = sdpOrNull(response);
    if (sdp !== null && this.#early.size < LIMITS.forksMax) {
      this.#early.set(tagOf(response.headers.get("To")), sdp);
    }
    this.#events.progress(response.status, sdp);
  }

  #accepted(hop: Hop, invite: SipRequest, response: SipResponse): void {
    const tag = tagOf(response.headers.get("To"));
    const acknowledgeAgain = this.#acknowledged.get(tag);
    if (acknowledgeAgain) return acknowledgeAgain();
    // More forks than anybody has telephones: without an ACK they time out by themselves.
    if (this.#acknowledged.size >= LIMITS.forksMax) return;
    hop.patience?.cancel();
    const signalling = this.#signalling;
    const dialog = dialogAsCaller(invite, response, hop.peer, hop.localHost);
    const { request: ack, peer: next } = requestWithin(dialog, "ACK", signalling, invite);
    const acknowledge = () => signalling.post(ack, next, hop.localHost);
    this.#acknowledged.set(tag, acknowledge);
    acknowledge();
    const session = new Session({
      signalling,
      dialog,
      authentication: this.#authentication,
      sdp: hop.sdp,
      terms: termsOfResponse(response.headers),
      allow: tokensOf(response.headers, "Allow"),
      accept: tokensOf(response.headers, "Accept"),
      isCaller: true,
    });
    // The call was cancelled, this address was abandoned, or another telephone answered first.
    if (this.#isOver || hop !== this.#hop) return session.bye();
    const sdp = sdpOrNull(response) ?? this.#early.get(tag) ?? null;
    if (sdp === null) {
      session.bye();
      return this.#fail(488, "No SDP In Answer");
    }
    this.#finish();
    this.#events.answered(session, sdp);
  }

  #refused(hop: Hop, response: SipResponse): void {
    hop.patience?.cancel();
    if (this.#isOver || hop !== this.#hop) return;
    if (response.status === UNAVAILABLE && this.#goOn()) return;
    if (this.#authenticator.challenged(response, hop.peer)) return this.#inviteAgain(hop);
    if (NOT_ACCEPTABLE.has(response.status) && this.#otherSdp) {
      this.#hop = newHop(hop.peer, hop.localHost, this.#otherSdp(hop.localHost));
      this.#otherSdp = undefined;
      return this.#inviteAgain(this.#hop);
    }
    const minS = secondsOf(response.headers, "Min-SE") ?? 0;
    if (response.status === 422 && minS > this.#minSeS && minS <= LIMITS.sessionExpiresMaxS) {
      this.#minSeS = minS;
      return this.#inviteAgain(hop);
    }
    this.#fail(response.status, response.reason, q850Of(response.headers));
  }

  #inviteAgain(hop: Hop): void {
    this.#cseq++;
    this.#invite(hop);
  }

  #sendCancel(hop: Hop): void {
    const { transaction } = hop;
    if (!transaction) return;
    const cancel = sameTransaction(transaction.request, "CANCEL");
    this.#signalling.beginAs(cancel, transaction.peer, {
      response: () => undefined,
      failed: () => undefined,
    });
    // The far end may never send the final response (487) to the cancelled INVITE.
    hop.patience = this.#signalling.system.after(LIMITS.transactionMs, () => transaction.stop());
  }

  #fail(status: number, reason: string, q850: number | null = null): void {
    if (this.#isOver) return;
    this.#finish();
    this.#events.failed(status, reason, q850);
  }

  #finish(): void {
    this.#isOver = true;
    this.#ringing?.cancel();
    this.#silence?.cancel();
    this.#done();
  }
}
