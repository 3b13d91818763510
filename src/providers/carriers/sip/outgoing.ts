// A call we place: the INVITE with its challenges and retries, CANCEL, and the 2xx answers, of
// which there may be several when a proxy rang more than one telephone.
import type { Timer } from "../../../core/system.ts";
import {
  createAuthenticator, type Authentication, type Authenticator, type Credentials,
} from "./authentication.ts";
import { q850Of, sdpOrNull, secondsOf, tokensOf } from "./bodies.ts";
import type { CallEvents, OutgoingCall } from "./call-types.ts";
import { sameTransaction, type ClientTransaction } from "./client-transactions.ts";
import {
  ALLOW, dialogAsCaller, requestWithin, setSdp, SUPPORTED, tagOf, type Signalling,
} from "./dialog.ts";
import {
  formatNameAddr, parseNameAddr, REASONS, SipHeaders, type SipRequest, type SipResponse,
} from "./message.ts";
import type { Peer } from "./peer.ts";
import { Session } from "./session.ts";
import { offerTerms, termsOfResponse } from "./session-timer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "./signalling-limits.ts";
import { newTag } from "./transactions.ts";
import { parseUri } from "./uri.ts";

export interface CallRequest {
  peer: Peer;
  uri: string;
  /** Addresses, bare or with a name. */
  from: string;
  to: string;
  sdp: string;
  credentials: Credentials | null;
  headers?: [string, string][];
  /** Until an unanswered call is cancelled. */
  ringingMs: number;
}

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
  /** Nobody waits for the answer any more: one that comes is hung up on. */
  #isCancelled = false;
  #localHost = "";
  #cseq = 0;
  #minSeS: number = LIMITS.sessionExpiresMinS;
  #transaction: ClientTransaction | null = null;
  #isProvisional = false;
  #ringing: Timer | null = null;
  #patience: Timer | null = null;
  /** By tag of the far end. */
  readonly #early = new Map<string, string>();
  readonly #acknowledged = new Map<string, () => void>();

  constructor(signalling: Signalling, args: CallRequest, events: CallEvents, done: () => void) {
    const { system } = signalling;
    this.#signalling = signalling;
    this.#args = args;
    this.#events = events;
    this.#done = done;
    this.#authentication = createAuthenticator(system, args.credentials);
    this.#authenticator = this.#authentication.begin();
    this.#callId = `${system.uuid()}`;
    const from = parseNameAddr(args.from) ?? { display: null, uri: args.from, params: new Map() };
    from.params.set("tag", newTag(system));
    this.#from = formatNameAddr(from);
  }

  async begin(): Promise<void> {
    this.#ringing = this.#signalling.system.after(this.#args.ringingMs, () => {
      this.#giveUp(480, "No Answer");
    });
    try {
      this.#localHost = await this.#signalling.localHost(this.#args.peer);
    } catch (error) {
      this.#signalling.log.info({ cause: String(error) }, "no way to the SIP peer");
      return this.#fail(408, "Unreachable");
    }
    if (!this.#isOver) this.#invite();
  }

  cancel(): void {
    this.#giveUp(487, REASONS[487] ?? "");
  }

  /** Told at once; what the far end still has to be told goes on behind it. */
  #giveUp(status: number, reason: string): void {
    if (this.#isOver) return;
    this.#isCancelled = true;
    // Before anything has come back there is nothing a CANCEL could meet (RFC 3261 9.1).
    if (this.#isProvisional) this.#sendCancel();
    this.#fail(status, reason);
  }

  #invite(): void {
    const { args, from } = { args: this.#args, from: this.#from };
    const to = parseNameAddr(args.to) ?? { display: null, uri: args.to, params: new Map() };
    const headers = new SipHeaders();
    this.#cseq++;
    const user = parseUri(parseNameAddr(args.from)?.uri ?? args.from)?.user ?? null;
    headers.add("Max-Forwards", "70")
      .add("From", from)
      .add("To", formatNameAddr(to))
      .add("Call-ID", this.#callId)
      .add("CSeq", `${this.#cseq} INVITE`)
      .add("Contact", this.#signalling.contact(args.peer, this.#localHost, user))
      .add("Allow", ALLOW)
      .add("Supported", SUPPORTED)
      .add("Expires", String(Math.ceil(args.ringingMs / 1000)));
    offerTerms(headers, null, this.#minSeS);
    for (const [name, value] of args.headers ?? []) headers.add(name, value);
    const request: SipRequest = {
      kind: "request", method: "INVITE", uri: args.uri, headers, body: Buffer.alloc(0),
    };
    setSdp(request, args.sdp);
    this.#authenticator.prepare(request);
    this.#isProvisional = false;
    this.#transaction = this.#signalling.begin(request, args.peer, this.#localHost, {
      response: (response) => this.#received(request, response),
      failed: (why) => {
        this.#signalling.log.info({ host: args.peer.host, why }, "SIP peer does not answer");
        this.#fail(408, why === "timeout" ? "Request Timeout" : "Unreachable");
      },
    });
  }

  #received(invite: SipRequest, response: SipResponse): void {
    if (response.status < 200) this.#progressed(response);
    else if (response.status < 300) this.#accepted(invite, response);
    else this.#refused(response);
  }

  #progressed(response: SipResponse): void {
    const isFirst = !this.#isProvisional;
    this.#isProvisional = true;
    if (this.#isCancelled && isFirst) return this.#sendCancel();
    if (this.#isOver || response.status === 100) return;
    const sdp = sdpOrNull(response);
    if (sdp !== null && this.#early.size < LIMITS.forksMax) {
      this.#early.set(tagOf(response.headers.get("To")), sdp);
    }
    this.#events.progress(response.status, sdp);
  }

  #accepted(invite: SipRequest, response: SipResponse): void {
    const tag = tagOf(response.headers.get("To"));
    const acknowledgeAgain = this.#acknowledged.get(tag);
    if (acknowledgeAgain) return acknowledgeAgain();
    // More telephones than anybody has: left to give up by themselves.
    if (this.#acknowledged.size >= LIMITS.forksMax) return;
    this.#patience?.cancel();
    const signalling = this.#signalling;
    const { peer, sdp: offer } = this.#args;
    const dialog = dialogAsCaller(invite, response, peer, this.#localHost);
    const { request: ack, peer: next } = requestWithin(dialog, "ACK", signalling, invite);
    const acknowledge = () => signalling.post(ack, next, this.#localHost);
    this.#acknowledged.set(tag, acknowledge);
    acknowledge();
    const session = new Session({
      signalling,
      dialog,
      authentication: this.#authentication,
      sdp: offer,
      terms: termsOfResponse(response.headers),
      allow: tokensOf(response.headers, "Allow"),
      isCaller: true,
    });
    // Cancelled, or somebody else picked up first.
    if (this.#isOver) return session.bye();
    const sdp = sdpOrNull(response) ?? this.#early.get(tag) ?? null;
    if (sdp === null) {
      session.bye();
      return this.#fail(488, "No SDP In Answer");
    }
    this.#finish();
    this.#events.answered(session, sdp);
  }

  #refused(response: SipResponse): void {
    this.#patience?.cancel();
    if (this.#isOver) return;
    if (this.#authenticator.challenged(response)) return this.#invite();
    const minS = secondsOf(response.headers, "Min-SE") ?? 0;
    if (response.status === 422 && minS > this.#minSeS && minS <= LIMITS.sessionExpiresMaxS) {
      this.#minSeS = minS;
      return this.#invite();
    }
    this.#fail(response.status, response.reason, q850Of(response.headers));
  }

  #sendCancel(): void {
    const transaction = this.#transaction;
    if (!transaction) return;
    const cancel = sameTransaction(transaction.request, "CANCEL");
    this.#signalling.beginAs(cancel, transaction.peer, {
      response: () => undefined,
      failed: () => undefined,
    });
    // A far end that does not even refuse an INVITE it was told to forget.
    this.#patience = this.#signalling.system.after(LIMITS.transactionMs, () => transaction.stop());
  }

  #fail(status: number, reason: string, q850: number | null = null): void {
    if (this.#isOver) return;
    this.#finish();
    this.#events.failed(status, reason, q850);
  }

  #finish(): void {
    this.#isOver = true;
    this.#ringing?.cancel();
    this.#done();
  }
}
