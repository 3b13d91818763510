// An answered call, incoming or outgoing: everything that happens between the 2xx and the BYE.
import { ask, endsDialog, type Outcome } from "./asking.ts";
import type { Authentication } from "./authentication.ts";
import {
  keyOf, sdpOf, sdpOrNull, secondsOf, sipfragStatus, tokensOf,
} from "#providers/carriers/sip/grammar/bodies.ts";
import type { Dialog, DialogEnd, DialogEvents } from "./call-types.ts";
import {
  ALLOW, keyOfDialog, refreshTarget, setSdp, SUPPORTED, type DialogState, type InDialog,
  type Signalling,
} from "./dialog.ts";
import { retryLater } from "./early.ts";
import { createInfoKeys, KEYS_TYPE, type InfoKeys } from "./info-keys.ts";
import { parseCseq } from "#providers/carriers/sip/grammar/headers.ts";
import {
  responseTo, type SipRequest, type SipResponse,
} from "#providers/carriers/sip/grammar/message.ts";
import { plainHost, type Peer } from "#providers/carriers/sip/transport/peer.ts";
import {
  answerTerms, createSessionTimer, offerTerms, termsOfResponse, type SessionTerms,
  type SessionTimer,
} from "./session-timer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";
import { createUnacknowledged, type Unacknowledged } from "./unacknowledged.ts";

interface SessionParts {
  signalling: Signalling;
  dialog: DialogState;
  authentication: Authentication;
  /** Ours, as last sent. */
  sdp: string;
  terms: SessionTerms | null;
  /** The methods the far end's INVITE or 2xx says it understands. */
  allow: string[];
  accept: string[];
  /** Whether we placed the call: the caller waits longer after a collision of re-INVITEs. */
  isCaller: boolean;
}

type Answer = (response: SipResponse) => void;

export class Session implements Dialog, InDialog {
  readonly dialog: DialogState;
  readonly #parts: SessionParts;
  readonly #timer: SessionTimer;
  readonly #unacknowledged: Unacknowledged;
  readonly #keys: InfoKeys;
  #events: DialogEvents | null = null;
  #end: DialogEnd | null = null;
  #sdp: string;
  #sessionExpiresMinS: number = LIMITS.sessionExpiresMinS;
  #canUpdate: boolean;
  /** Our last offer has no answer yet. */
  #isOffering = false;
  #glares = 0;
  #isLeaving = false;
  #reportTransfer: (status: number) => void = () => undefined;
  #transfer: { isOver: boolean; patience: { cancel(): void } } | null = null;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.dialog = parts.dialog;
    this.#sdp = parts.sdp;
    this.#canUpdate = parts.allow.includes("update");
    const { system } = parts.signalling;
    this.#timer = createSessionTimer(system, {
      refresh: () => this.#refresh(),
      expired: () => this.#hangUp({ by: "timeout", status: 408 }),
    });
    this.#unacknowledged = createUnacknowledged(system, {
      acknowledged: (sdp) => {
        if (!this.#end) this.#events?.confirmed(sdp);
      },
      lost: () => this.#hangUp({ by: "timeout", status: 408 }),
      settled: () => {
        if (this.#isLeaving) this.#sendBye();
      },
    });
    this.#keys = createInfoKeys(system, (fill, done) => this.#ask("INFO", fill, done));
    this.#timer.agree(parts.terms);
    parts.signalling.sessions.add(keyOfDialog(parts.dialog), this);
  }

  get peerHost(): string {
    return this.dialog.peer.host;
  }

  setEvents(events: DialogEvents): void {
    this.#events = events;
    if (this.#end) events.ended(this.#end);
  }

  bye(): void {
    this.#hangUp({ by: "us", status: null });
  }

  refer(to: string): void {
    if (this.#end) return;
    this.#transfer?.patience.cancel();
    const { system } = this.#parts.signalling;
    const transfer = { isOver: false, patience: { cancel: () => undefined as void } };
    const report = (status: number) => {
      if (transfer.isOver || this.#transfer !== transfer) return;
      transfer.isOver = status >= 200;
      transfer.patience.cancel();
      if (!transfer.isOver) {
        transfer.patience = system.after(LIMITS.referMs, () => report(408));
      }
      this.#events?.referred(status);
    };
    this.#transfer = transfer;
    this.#reportTransfer = report;
    const fill = ({ headers }: SipRequest) => {
      headers.set("Refer-To", `<${to}>`).set("Referred-By", this.dialog.local.split(";tag=")[0] ?? "");
    };
    this.#ask("REFER", fill, (outcome) => {
      const status = outcome.kind === "response" ? outcome.response.status : 408;
      // A 2xx only accepts the REFER; NOTIFY reports its outcome.
      report(status < 300 ? 100 : status);
      if (status === 481) this.#over({ by: "far", status });
    });
  }

  press(keys: string): boolean {
    const { allow, accept } = this.#parts;
    if (this.#end || !allow.includes("info") || !accept.includes(KEYS_TYPE)) return false;
    this.#keys.add(keys);
    return true;
  }

  /** Sends the 2xx to an INVITE, and retransmits it until its ACK comes. */
  promise(invite: SipRequest, response: SipResponse, send: Answer, wantsSdp: boolean): void {
    send(response);
    this.#unacknowledged.add(numberOf(invite), () => send(response), wantsSdp);
  }

  /** Ends a session that was cancelled before it began. */
  abandon(end: DialogEnd): void {
    this.#over(end);
  }

  acknowledged(request: SipRequest): void {
    this.#unacknowledged.acknowledge(numberOf(request), sdpOrNull(request));
  }

  receive(request: SipRequest, peer: Peer, answer: Answer): void {
    const number = numberOf(request);
    if (this.dialog.remoteCseq !== null && number <= this.dialog.remoteCseq) {
      return answer(responseTo(request, 500));
    }
    this.dialog.remoteCseq = number;
    // A device behind a NAT, or its connection, may have moved to another port.
    if (plainHost(peer.host) === plainHost(this.dialog.peer.host)) this.dialog.peer = peer;
    if (request.method === "BYE") {
      answer(responseTo(request, 200));
      return this.#over({ by: "far", status: null });
    }
    if (this.#end) return answer(responseTo(request, 481));
    switch (request.method) {
      case "INVITE":
      case "UPDATE":
        return this.#offered(request, answer);
      case "INFO":
        return this.#informed(request, answer);
      case "NOTIFY":
        return this.#notified(request, answer);
      default: {
        const response = responseTo(request, 405);
        response.headers.add("Allow", ALLOW);
        return answer(response);
      }
    }
  }

  /** The call ends for the carrier at once; BYE is sent as soon as RFC 3261 allows it. */
  #hangUp(end: DialogEnd): void {
    if (this.#end) return;
    this.#isLeaving = true;
    this.#finish(end);
    // A callee may not send BYE before its 2xx is acknowledged or has timed out (RFC 3261 15).
    if (!this.#unacknowledged.isEmpty()) return;
    this.#sendBye();
  }

  #sendBye(): void {
    this.#isLeaving = false;
    this.#forget();
    this.#ask("BYE", () => undefined, () => undefined);
  }

  /** The dialog ended without a BYE of ours. */
  #over(end: DialogEnd): void {
    this.#isLeaving = false;
    this.#unacknowledged.stop();
    this.#forget();
    this.#finish(end);
  }

  #finish(end: DialogEnd): void {
    this.#timer.stop();
    this.#keys.stop();
    this.#transfer?.patience.cancel();
    if (this.#end) return;
    this.#end = end;
    this.#events?.ended(end);
  }

  #forget(): void {
    this.#parts.signalling.sessions.remove(keyOfDialog(this.dialog));
  }

  #ask(method: string, fill: (request: SipRequest) => void, done: (it: Outcome) => void): void {
    ask(this.#parts, method, fill, done);
  }

  #offered(request: SipRequest, answer: Answer): void {
    const sdp = sdpOf(request);
    const isInvite = request.method === "INVITE";
    if (sdp !== null && typeof sdp !== "string") {
      const refusal = responseTo(request, 415);
      refusal.headers.add("Accept", "application/sdp");
      return answer(refusal);
    }
    const exchangesSdp = isInvite || sdp !== null;
    if (exchangesSdp && this.#isOffering) return answer(responseTo(request, 491));
    if (exchangesSdp && this.#unacknowledged.wantsSdp()) return answer(retryLater(request));
    const terms = answerTerms(request.headers);
    if (terms.kind === "too_small") {
      const refusal = responseTo(request, 422);
      refusal.headers.add("Min-SE", String(LIMITS.sessionExpiresMinS));
      return answer(refusal);
    }
    const reply = exchangesSdp ? this.#events?.reinvite(sdp) ?? 500 : null;
    // The handler may have hung up.
    if (this.#end) return answer(responseTo(request, 481));
    if (typeof reply === "number") return answer(responseTo(request, reply));
    const response = responseTo(request, 200);
    response.headers.add("Contact", this.dialog.contact).add("Allow", ALLOW)
      .add("Supported", SUPPORTED);
    for (const [name, value] of terms.headers) response.headers.add(name, value);
    if (reply !== null) {
      setSdp(response, reply);
      this.#sdp = reply;
    }
    refreshTarget(this.dialog, request);
    this.#timer.agree(terms.terms);
    if (isInvite) this.promise(request, response, answer, sdp === null);
    else answer(response);
  }

  #informed(request: SipRequest, answer: Answer): void {
    const key = keyOf(request);
    // An empty INFO only asks whether we are there.
    answer(responseTo(request, key !== null || request.body.length === 0 ? 200 : 415));
    if (key !== null) this.#events?.info(key);
  }

  #notified(request: SipRequest, answer: Answer): void {
    const isOurs = tokensOf(request.headers, "Event")[0] === "refer" && this.#transfer !== null;
    answer(responseTo(request, isOurs ? 200 : 481));
    if (!isOurs) return;
    const status = sipfragStatus(request);
    if (status !== null) this.#reportTransfer(status);
    // No more NOTIFYs will come; unless one was final, the outcome stays unknown and has failed.
    if (tokensOf(request.headers, "Subscription-State")[0] === "terminated") {
      this.#reportTransfer(503);
    }
  }

  #refresh(): void {
    if (this.#end) return;
    if (this.#isOffering) return this.#retry();
    const [method, sdp] = this.#canUpdate
      ? ["UPDATE", null] as const : ["INVITE", this.#sdp] as const;
    this.#offer(method, sdp, (response) => {
      const { status, headers } = response;
      if (status < 300) {
        const answer = sdp === null ? null : sdpOrNull(response);
        if (answer !== null) this.#events?.refreshed?.(answer);
        return;
      }
      // A temporary refusal is retried: the session lasts long enough for several attempts.
      const isForNow = status === 491 || status >= 500;
      if (method === "UPDATE" && (!isForNow || status === 501)) {
        this.#canUpdate = false;
        return this.#refresh();
      }
      if (!isForNow) return;
      const namedS = secondsOf(headers, "Retry-After") ?? LIMITS.retryAfterS;
      const afterS = Math.min(Math.max(namedS, LIMITS.retryAfterMinS), LIMITS.retryAfterMaxS);
      this.#parts.signalling.system.after(afterS * 1000, () => this.#refresh());
    });
  }

  /** INVITE with an offer, or UPDATE without one: both refresh the session. */
  #offer(
    method: "INVITE" | "UPDATE", sdp: string | null,
    done: (response: SipResponse) => void,
  ): void {
    this.#isOffering = sdp !== null;
    const fill = (request: SipRequest) => {
      if (this.#timer.terms) {
        offerTerms(request.headers, this.#timer.terms, this.#sessionExpiresMinS);
      }
      if (sdp !== null) setSdp(request, sdp);
    };
    this.#ask(method, fill, (outcome) => {
      if (sdp !== null) this.#isOffering = false;
      if (this.#end) return;
      if (endsDialog(outcome)) return this.#hangUp({ by: "timeout", status: statusOf(outcome) });
      if (outcome.kind === "failed") return;
      const { response } = outcome;
      if (response.status === 491 && this.#glares < LIMITS.glareRetriesMax) {
        this.#glares++;
        return this.#retry();
      }
      this.#glares = 0;
      if (response.status === 422) {
        const minS = Number(response.headers.get("Min-SE")?.match(/^\d{1,6}/)?.[0] ?? 0);
        if (minS > this.#sessionExpiresMinS && minS <= LIMITS.sessionExpiresMaxS) {
          this.#sessionExpiresMinS = minS;
          return this.#offer(method, sdp, done);
        }
      }
      if (response.status < 300) {
        refreshTarget(this.dialog, response);
        this.#timer.agree(termsOfResponse(response.headers));
        if (sdp !== null) this.#sdp = sdp;
      }
      done(response);
    });
  }

  /** RFC 3261 14.1: the caller waits longer, so that they do not collide for ever. */
  #retry(): void {
    const { system } = this.#parts.signalling;
    const random = system.randomBytes(2).readUInt16BE() / 65_536;
    const delayMs = this.#parts.isCaller ? 2100 + random * 1900 : random * 2000;
    system.after(delayMs, () => this.#refresh());
  }
}

const numberOf = (request: SipRequest): number =>
  parseCseq(request.headers.get("CSeq"))?.number ?? 0;

const statusOf = (outcome: Outcome): number =>
  outcome.kind === "response" ? outcome.response.status : 408;
