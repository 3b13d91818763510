// Server transactions (RFC 3261 section 17, RFC 6026): a retransmitted request is not taken for a
// new one but gets the same response, and the refusal of an INVITE is retransmitted until it is
// acknowledged. Retransmitting a 2xx until its ACK comes is up to the dialog.
import type { System, Timer } from "#core/system.ts";
import type { Send } from "./client-transactions.ts";
import { parseCseq, parseNameAddr, parseVia } from "#providers/carriers/sip/grammar/headers.ts";
import {
  serialise, type SipRequest, type SipResponse,
} from "#providers/carriers/sip/grammar/message.ts";
import { answerPeer, plainHost, type Peer } from "./peer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";

export interface ServerTransaction {
  readonly request: SipRequest;
  readonly peer: Peer;
  /** Has no effect after a final response, except that a 2xx to an INVITE may be sent again. */
  respond(response: SipResponse): void;
  /** Forgets it at once. */
  drop(): void;
}

export interface ServerTransactions {
  /** `taken`: a transaction has handled the request. An ACK to a 2xx is always `new`. */
  receive(request: SipRequest, peer: Peer): "taken" | "new";
  serve(request: SipRequest, peer: Peer): ServerTransaction;
  /** The INVITE a CANCEL is about, when it came from the same address. */
  inviteOf(cancel: SipRequest, peer: Peer): ServerTransaction | null;
  /** Whether the same request already came by another path (RFC 3261 8.2.2.2). */
  isMerged(request: SipRequest): boolean;
  size(): number;
  close(): void;
}

const COOKIE = "z9hG4bK";

/** Devices older than RFC 3261 send no unique branch: then the identifying headers are the key. */
function keyOf(request: SipRequest, method: string): string {
  const top = request.headers.get("Via") ?? "";
  const via = parseVia(top);
  if (via?.branch?.startsWith(COOKIE)) {
    return `${via.branch}|${via.host.toLowerCase()}:${via.port ?? ""}|${method}`;
  }
  return `${top}|${mergedKeyOf(request)}|${request.uri}|${method}`;
}

function mergedKeyOf(request: SipRequest): string {
  const tag = parseNameAddr(request.headers.get("From") ?? "")?.params.get("tag") ?? "";
  const cseq = parseCseq(request.headers.get("CSeq"));
  return `${request.headers.get("Call-ID") ?? ""}|${tag}|${cseq?.number ?? ""}`;
}

export function createServerTransactions(system: System, send: Send): ServerTransactions {
  const live = new Map<string, Server>();
  const merged = new Map<string, Server>();
  const mergedKey = (request: SipRequest) => `${mergedKeyOf(request)}|${request.method}`;
  return {
    receive(request, peer) {
      const known = live.get(keyOf(request, request.method === "ACK" ? "INVITE" : request.method));
      if (!known) return "new";
      if (request.method !== "ACK") known.again();
      // An ACK is for the transaction only after a refusal; a device that reuses the branch for its
      // ACK to a 2xx means the dialog.
      else if (!known.acknowledge(peer)) return "new";
      return "taken";
    },
    serve(request, peer) {
      const key = keyOf(request, request.method);
      const other = mergedKey(request);
      const server = new Server(system, send, request, peer, () => {
        if (live.get(key) === server) live.delete(key);
        if (merged.get(other) === server) merged.delete(other);
      });
      live.set(key, server);
      merged.set(other, server);
      return server;
    },
    inviteOf(cancel, peer) {
      const invite = live.get(keyOf(cancel, "INVITE"));
      return invite && plainHost(invite.peer.host) === plainHost(peer.host) ? invite : null;
    },
    isMerged: (request) => merged.has(mergedKey(request)),
    size: () => live.size,
    close() {
      for (const server of [...live.values()]) server.drop();
    },
  };
}

class Server implements ServerTransaction {
  readonly request: SipRequest;
  readonly peer: Peer;
  readonly #system: System;
  readonly #send: Send;
  readonly #gone: () => void;
  readonly #isInvite: boolean;
  readonly #isReliable: boolean;
  #state: "open" | "accepted" | "completed" | "confirmed" | "gone" = "open";
  #last: Buffer | null = null;
  #again: Timer | null = null;
  #end: Timer | null = null;

  constructor(
    system: System, send: Send, request: SipRequest, peer: Peer, gone: () => void,
  ) {
    this.#system = system;
    this.#send = send;
    this.request = request;
    this.peer = peer;
    this.#gone = gone;
    this.#isInvite = request.method === "INVITE";
    this.#isReliable = peer.transport !== "udp";
  }

  respond(response: SipResponse): void {
    if (this.#state === "accepted" && response.status >= 200 && response.status < 300) {
      return this.#transmit(serialise(response));
    }
    if (this.#state !== "open") return;
    this.#last = serialise(response);
    this.#transmit(this.#last);
    if (response.status < 200) return;
    if (!this.#isInvite) {
      this.#state = "completed";
      // Timer J.
      if (this.#isReliable) this.drop();
      else this.#goneAfter(LIMITS.transactionMs);
    } else {
      this.#state = response.status < 300 ? "accepted" : "completed";
      // Timers L (2xx) and H (refusal), and timer G in the next line.
      this.#goneAfter(LIMITS.transactionMs);
      if (this.#state === "completed" && !this.#isReliable) this.#repeat(LIMITS.t1Ms);
    }
  }

  /** Handles a retransmission of the request. */
  again(): void {
    if (this.#state === "accepted" || this.#state === "confirmed") return;
    if (this.#last) this.#transmit(this.#last);
  }

  /** False when the ACK is not for this transaction. */
  acknowledge(peer: Peer): boolean {
    if (this.#state === "confirmed") return true;
    if (this.#state !== "completed" || plainHost(peer.host) !== plainHost(this.peer.host)) {
      return false;
    }
    this.#state = "confirmed";
    this.#again?.cancel();
    // Timer I: swallows further ACKs.
    if (this.#isReliable) this.drop();
    else this.#goneAfter(LIMITS.t4Ms);
    return true;
  }

  drop(): void {
    this.#again?.cancel();
    this.#end?.cancel();
    this.#state = "gone";
    this.#gone();
  }

  #repeat(delayMs: number): void {
    this.#again = this.#system.after(delayMs, () => {
      this.#repeat(Math.min(delayMs * 2, LIMITS.t2Ms));
      if (this.#last) this.#transmit(this.#last);
    });
  }

  #goneAfter(delayMs: number): void {
    this.#end?.cancel();
    this.#end = this.#system.after(delayMs, () => this.drop());
  }

  #transmit(bytes: Buffer): void {
    this.#send(answerPeer(this.request, this.peer), bytes, () => undefined);
  }
}
