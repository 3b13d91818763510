// The SIP user agent, which sip.ts creates: dispatches every request that arrives. The calls
// themselves are in incoming.ts, outgoing.ts and sip-session.ts.
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { CallEvents, IncomingInvite, OutgoingCall } from "./call-types.ts";
import {
  ALLOW, dialogKey, mayComeFrom, SUPPORTED, tagOf, type InDialog, type Signalling,
} from "./dialog.ts";
import type { EarlyCall } from "./early.ts";
import { createFloodGuard } from "#providers/carriers/sip/transport/flood-guard.ts";
import { Incoming } from "./incoming.ts";
import { formatVia } from "#providers/carriers/sip/grammar/headers.ts";
import {
  responseTo, serialise, type Parsed, type SipRequest, type SipResponse,
} from "#providers/carriers/sip/grammar/message.ts";
import { Outgoing, type CallRequest } from "./outgoing.ts";
import {
  answerPeer, uriHost, uriTransport, type MayReach, type Peer,
} from "#providers/carriers/sip/transport/peer.ts";
import {
  createRegistration, type Registration, type RegistrationRequest, type RegistrationState,
} from "./registration.ts";
import { inviteRefusalOf, refusalOf } from "./screening.ts";
import type { ServerTransaction } from "#providers/carriers/sip/transport/server-transactions.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";
import { createTransactions, newBranch, newTag, type Transactions } from "#providers/carriers/sip/transport/transactions.ts";
import { createTransport, type Transport } from "#providers/carriers/sip/transport/transport.ts";
import { escapeUser } from "#providers/carriers/sip/grammar/uri.ts";

export interface UserAgentOptions {
  /** Address and port to listen on; port 0 for any. */
  host: string;
  port: number;
  /** Written into Via, Contact and SDP; null: our address as the peer sees it. */
  publicHost: string | null;
  /** When set, TLS listens on the next port. */
  tls: { key: string; cert: string } | null;
  /** Whether to verify the certificate of a TLS peer; true by default. */
  tlsVerify?: boolean;
  /** PEM of the authorities to trust instead of the well-known ones. */
  tlsCa?: string | undefined;
  userAgent: string;
  /** Asked about every address that a far end's responses or requests would have us send to. */
  mayReach: MayReach;
  system: System;
  log: Logger;
  /** Whether one more call would be taken, for proxies that ask with OPTIONS; absent means yes. */
  hasRoom?(): boolean;
  /** Receives every initial INVITE; the handler refuses, rings or accepts it, now or later. */
  onInvite(invite: IncomingInvite): void;
}

export interface UserAgent {
  readonly port: number;
  readonly tlsPort: number | null;
  /** The address for SDP towards the peer. */
  localHost(peer: Peer): Promise<string>;
  call(args: CallRequest, events: CallEvents): OutgoingCall;
  register(args: RegistrationRequest, onState: (state: RegistrationState) => void): Registration;
  /** Counts of what is held in memory, for tests. */
  counts(): { transactions: number; sessions: number; connections: number; sources: number };
  /** Hangs up and unregisters, waiting for answers a bounded time. Idempotent. */
  close(): Promise<void>;
}

export async function createUserAgent(options: UserAgentOptions): Promise<UserAgent> {
  // No message arrives before `current` is set, because sockets emit in a later turn.
  const agent: { current: Agent | null } = { current: null };
  const transport = await createTransport({
    ...options,
    tlsVerify: options.tlsVerify ?? true,
    onReceive: (parsed, peer) => agent.current?.receive(parsed, peer),
  });
  const current = new Agent(options, transport);
  agent.current = current;
  return {
    port: transport.port,
    tlsPort: transport.tlsPort,
    localHost: (peer) => transport.localHost(peer),
    call: (args, events) => current.call(args, events),
    register: (args, onState) => current.register(args, onState),
    counts: () => current.counts(),
    close: () => current.close(),
  };
}

class Agent {
  readonly #options: UserAgentOptions;
  readonly #transport: Transport;
  readonly #transactions: Transactions;
  readonly #guard: ReturnType<typeof createFloodGuard>;
  readonly #signalling: Signalling;
  readonly #sessions = new Map<string, InDialog>();
  readonly #invites = new Map<ServerTransaction, { incoming: Incoming | null; tag: string }>();
  readonly #calls = new Set<Outgoing>();
  readonly #registrations = new Set<Registration>();
  #closing: Promise<void> | null = null;

  constructor(options: UserAgentOptions, transport: Transport) {
    this.#options = options;
    this.#transport = transport;
    this.#guard = createFloodGuard(options.system);
    this.#transactions = createTransactions({
      system: options.system,
      send: (peer, bytes, onFailed) => transport.send(peer, bytes, onFailed),
      onRequest: (request, peer) => this.#requested(request, peer),
    });
    this.#signalling = this.#createSignalling();
  }

  receive(parsed: Parsed, peer: Peer): void {
    if (parsed.kind === "message") this.#transactions.receive(parsed.message, peer);
    else if (parsed.kind === "bad" && parsed.answer) {
      const { status, reason, answer } = parsed;
      this.#refuse(responseTo(answer, status, reason, newTag(this.#options.system)), answer, peer);
    }
  }

  call(args: CallRequest, events: CallEvents): OutgoingCall {
    const call = new Outgoing(this.#signalling, args, events, () => this.#calls.delete(call));
    this.#calls.add(call);
    void call.begin();
    return call;
  }

  register(args: RegistrationRequest, onState: (state: RegistrationState) => void): Registration {
    const ping = (peer: Peer) =>
      this.#transport.send(peer, Buffer.from("\r\n\r\n"), () => undefined);
    const parts = { signalling: this.#signalling, ping };
    const inner = createRegistration(parts, args, onState);
    const registration: Registration = {
      close: async () => {
        await inner.close();
        this.#registrations.delete(registration);
      },
    };
    this.#registrations.add(registration);
    return registration;
  }

  counts() {
    const { clients, servers } = this.#transactions;
    return {
      transactions: clients.size() + servers.size(),
      sessions: this.#sessions.size,
      connections: this.#transport.connections(),
      sources: this.#guard.size(),
    };
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      for (const { incoming } of [...this.#invites.values()]) incoming?.refuse(503);
      for (const call of [...this.#calls]) call.cancel();
      for (const session of [...this.#sessions.values()]) session.bye();
      await Promise.all([...this.#registrations].map((registration) => registration.close()));
      await this.#settled();
      this.#transactions.close();
      await this.#transport.close();
    })();
    return this.#closing;
  }

  async #settled(): Promise<void> {
    let cancel = () => undefined as void;
    const waited = new Promise<void>((resolve) => {
      const timer = this.#options.system.after(LIMITS.farewellMs, resolve);
      cancel = () => timer.cancel();
    });
    await Promise.race([waited, this.#transactions.clients.settled()]);
    cancel();
  }

  #createSignalling(): Signalling {
    const { system, log, mayReach } = this.#options;
    const { clients } = this.#transactions;
    const addVia = (request: SipRequest, peer: Peer, localHost: string) => {
      request.headers.prepend("Via", formatVia({
        transport: peer.transport.toUpperCase(),
        host: localHost,
        port: this.#portFor(peer),
        branch: newBranch(system),
        params: new Map([["rport", null]]),
      }));
      request.headers.set("User-Agent", this.#options.userAgent);
    };
    return {
      system,
      log,
      mayReach,
      contact: (peer, localHost, user) => {
        const name = user === null ? "" : `${escapeUser(user)}@`;
        const authority = `${uriHost(localHost)}:${this.#portFor(peer)}`;
        return `<sip:${name}${authority}${uriTransport(peer.transport)}>`;
      },
      localHost: (peer) => this.#transport.localHost(peer),
      hasConnection: (peer) => this.#transport.has(peer),
      begin: (request, peer, localHost, handlers) => {
        addVia(request, peer, localHost);
        return clients.start(request, peer, handlers);
      },
      beginAs: (request, peer, handlers) => clients.start(request, peer, handlers),
      post: (request, peer, localHost) => {
        if (request.headers.get("Via") === null) addVia(request, peer, localHost);
        this.#transport.send(peer, serialise(request), () => undefined);
      },
      sessions: {
        add: (key, session) => void this.#sessions.set(key, session),
        remove: (key) => void this.#sessions.delete(key),
      },
    };
  }

  /** When we do not listen for TLS, the far end can only come back over the open connection. */
  #portFor({ transport }: Peer): number {
    return transport === "tls" ? this.#transport.tlsPort ?? this.#transport.port + 1
      : this.#transport.port;
  }

  #requested(request: SipRequest, peer: Peer): void {
    const localTag = tagOf(request.headers.get("To"));
    if (request.method === "ACK") this.#acknowledged(request, peer, localTag);
    else if (request.method === "CANCEL") this.#cancelled(request, peer);
    else if (localTag !== "") this.#within(request, peer, localTag);
    else this.#without(request, peer);
  }

  #sessionOf(request: SipRequest, peer: Peer, localTag: string): InDialog | null {
    const { headers } = request;
    const key = dialogKey(headers.get("Call-ID") ?? "", localTag, tagOf(headers.get("From")));
    const session = this.#sessions.get(key);
    if (!session || mayComeFrom(session.dialog, peer.host)) return session ?? null;
    this.#options.log.warn({ host: peer.host, method: request.method }, "a SIP request for a call came from a foreign address: ignored");
    return null;
  }

  #acknowledged(request: SipRequest, peer: Peer, localTag: string): void {
    this.#sessionOf(request, peer, localTag)?.acknowledged(request);
  }

  #cancelled(request: SipRequest, peer: Peer): void {
    const transaction = this.#transactions.servers.inviteOf(request, peer);
    if (!transaction) return this.#refuse(responseTo(request, 481), request, peer);
    const known = this.#invites.get(transaction);
    this.#answer(responseTo(request, 200, undefined, known?.tag), request, peer);
    if (!known) return;
    if (known.incoming) return known.incoming.cancel();
    // The carrier has not received this INVITE yet.
    this.#invites.delete(transaction);
    transaction.respond(responseTo(transaction.request, 487, undefined, known.tag));
  }

  #within(request: SipRequest, peer: Peer, localTag: string): void {
    const call = this.#sessionOf(request, peer, localTag) ?? this.#earlyOf(request, peer, localTag);
    if (!call) return this.#refuse(responseTo(request, 481), request, peer);
    const refusal = refusalOf(request, undefined);
    if (refusal) return this.#refuse(refusal, request, peer);
    if (request.method === "OPTIONS") return this.#answer(optionsReply(request), request, peer);
    if (this.#transactions.servers.size() >= LIMITS.serverTransactionsMax) {
      return this.#refuse(this.#busy(request, undefined), request, peer);
    }
    const transaction = this.#transactions.servers.serve(request, peer);
    call.receive(request, peer, (response) => transaction.respond(response));
  }

  /** The ringing call that the request belongs to; null when there is none. */
  #earlyOf(request: SipRequest, peer: Peer, localTag: string): EarlyCall | null {
    const callId = request.headers.get("Call-ID") ?? "";
    for (const { incoming } of this.#invites.values()) {
      const early = incoming?.early(callId, localTag, peer.host);
      if (early) return early;
    }
    for (const call of this.#calls) {
      const early = call.early(callId, localTag);
      if (early) return early;
    }
    return null;
  }

  #without(request: SipRequest, peer: Peer): void {
    const tag = newTag(this.#options.system);
    const refusal = this.#refusalWithout(request, peer, tag);
    if (refusal) return this.#refuse(refusal, request, peer);
    const transaction = this.#transactions.servers.serve(request, peer);
    this.#invites.set(transaction, { incoming: null, tag });
    void this.#invited(transaction, tag);
  }

  #refusalWithout(request: SipRequest, peer: Peer, tag: string): SipResponse | null {
    const { servers } = this.#transactions;
    const refusal = refusalOf(request, tag);
    if (refusal) return refusal;
    const isFull = this.#closing !== null || servers.size() >= LIMITS.newTransactionsMax;
    if (request.method === "OPTIONS") {
      const hasRoom = !isFull && this.#options.hasRoom?.() !== false;
      return hasRoom ? optionsReply(request, tag) : this.#busy(request, tag);
    }
    if (request.method !== "INVITE") return responseTo(request, 481, undefined, tag);
    if (isFull || !this.#guard.admitInvite(peer.host)) return this.#busy(request, tag);
    if (servers.isMerged(request)) return responseTo(request, 482, undefined, tag);
    return inviteRefusalOf(request, tag);
  }

  async #invited(transaction: ServerTransaction, tag: string): Promise<void> {
    const { peer, request } = transaction;
    let localHost: string;
    try {
      localHost = await this.#transport.localHost(peer);
    } catch (error) {
      this.#options.log.warn({ host: peer.host, cause: String(error) }, "could not answer the SIP peer");
      this.#invites.delete(transaction);
      return transaction.drop();
    }
    // Cancelled meanwhile.
    if (!this.#invites.has(transaction)) return;
    const incoming = new Incoming({
      signalling: this.#signalling, transaction, tag, localHost,
      done: () => void this.#invites.delete(transaction),
    });
    this.#invites.set(transaction, { incoming, tag });
    try {
      this.#options.onInvite(incoming);
    } catch (error) {
      this.#options.log.error({ err: error, callId: request.headers.get("Call-ID") }, "INVITE lost");
      incoming.refuse(500);
    }
    incoming.keep();
  }

  #busy(request: SipRequest, tag: string | undefined): SipResponse {
    const response = responseTo(request, 503, undefined, tag);
    response.headers.add("Retry-After", String(LIMITS.retryAfterS));
    return response;
  }

  /** Sends the refusal once and keeps no state; beyond the flood guard's limit it sends nothing. */
  #refuse(response: SipResponse, request: SipRequest, peer: Peer): void {
    if (request.method === "ACK" || !this.#guard.mayAnswer(peer.host)) return;
    this.#answer(response, request, peer);
  }

  #answer(response: SipResponse, request: SipRequest, peer: Peer): void {
    this.#transport.send(answerPeer(request, peer), serialise(response), () => undefined);
  }
}

function optionsReply(request: SipRequest, tag?: string): SipResponse {
  const response = responseTo(request, 200, undefined, tag);
  response.headers.add("Allow", ALLOW).add("Accept", "application/sdp").add("Supported", SUPPORTED);
  return response;
}
