// Keeps one address registered at a registrar: it renews at 80 % of the time granted, retries
// failures with growing delays, and unregisters when closed.
import type { Timer } from "#core/system.ts";
import {
  createAuthenticator, proofAt, type Authentication, type Credentials,
} from "./authentication.ts";
import { secondsOf } from "#providers/carriers/sip/grammar/bodies.ts";
import type { Signalling } from "./dialog.ts";
import { parseNameAddr, SipHeaders } from "#providers/carriers/sip/grammar/headers.ts";
import type { SipRequest, SipResponse } from "#providers/carriers/sip/grammar/message.ts";
import { plainHost, type Peer } from "#providers/carriers/sip/transport/peer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";
import { newTag } from "#providers/carriers/sip/transport/transactions.ts";
import { parseUri } from "#providers/carriers/sip/grammar/uri.ts";

export interface RegistrationRequest {
  peer: Peer;
  /** `sip:example.org` */
  registrar: string;
  /** The address of record: `sip:alice@example.org` */
  aor: string;
  contactUser: string;
  credentials: Credentials;
  expiresS: number;
}

export type RegistrationState = "registered" | "refused" | "unreachable";

export interface Registration {
  /** Unregisters; waits no longer than two seconds for the answer. Idempotent. */
  close(): Promise<void>;
}

interface RegistrationParts {
  signalling: Signalling;
  /** Sends only line ends, which keeps the NAT binding open. */
  ping(peer: Peer): void;
}

type Reply = SipResponse | "unreachable";

/** `onState` receives changes only. */
export function createRegistration(
  parts: RegistrationParts,
  args: RegistrationRequest,
  onState: (state: RegistrationState) => void,
): Registration {
  const keeper = new Keeper(parts, args, onState);
  void keeper.keep();
  return keeper;
}

class Keeper implements Registration {
  readonly #signalling: Signalling;
  readonly #args: RegistrationRequest;
  readonly #onState: (state: RegistrationState) => void;
  readonly #authentication: Authentication;
  readonly #callId: string;
  readonly #fromTag: string;
  readonly #pinging: Timer | null;
  #cseq = 0;
  #expiresS: number;
  #failures = 0;
  #state: RegistrationState | null = null;
  /** The registrar may know our address. */
  #isBound = false;
  #next: Timer | null = null;
  #closing: Promise<void> | null = null;

  constructor(
    { signalling, ping }: RegistrationParts,
    args: RegistrationRequest,
    onState: (state: RegistrationState) => void,
  ) {
    const { system } = signalling;
    this.#signalling = signalling;
    this.#args = args;
    this.#onState = onState;
    this.#expiresS = args.expiresS;
    this.#authentication = createAuthenticator(system, proofAt(args.credentials, [args.peer]));
    this.#callId = system.uuid();
    this.#fromTag = newTag(system);
    this.#pinging = args.peer.transport === "udp"
      ? system.every(LIMITS.natKeepaliveMs, () => {
        if (this.#state === "registered") ping(args.peer);
      })
      : null;
  }

  async keep(): Promise<void> {
    const { reply, request } = await this.#register(this.#expiresS);
    if (this.#closing) return;
    if (reply !== "unreachable" && request && reply.status < 300) {
      this.#failures = 0;
      this.#plan(grantedS(request, reply, this.#expiresS) * 800);
      return this.#publish("registered");
    }
    const least = reply !== "unreachable" && reply.status === 423
      ? secondsOf(reply.headers, "Min-Expires")
      : null;
    if (least !== null && least > this.#expiresS && least <= LIMITS.registerExpiresMaxS) {
      this.#expiresS = least;
      return this.keep();
    }
    this.#failures++;
    const isAway = reply === "unreachable" || reply.status >= 500 || reply.status === 408;
    this.#plan(this.#retryMs(reply, isAway));
    this.#publish(isAway ? "unreachable" : "refused");
  }

  close(): Promise<void> {
    this.#closing ??= this.#unregister();
    return this.#closing;
  }

  async #unregister(): Promise<void> {
    this.#next?.cancel();
    this.#pinging?.cancel();
    if (!this.#isBound) return;
    let cancel = () => undefined as void;
    const waited = new Promise<void>((resolve) => {
      const patience = this.#signalling.system.after(LIMITS.farewellMs, resolve);
      cancel = () => patience.cancel();
    });
    await Promise.race([waited, this.#register(0)]);
    cancel();
  }

  async #register(seconds: number): Promise<{ reply: Reply; request: SipRequest | null }> {
    const signalling = this.#signalling;
    const { peer } = this.#args;
    let localHost: string;
    try {
      localHost = await signalling.localHost(peer);
    } catch (error) {
      signalling.log.info({ cause: String(error) }, "could not reach the SIP registrar");
      return { reply: "unreachable", request: null };
    }
    if (this.#closing && seconds > 0) return { reply: "unreachable", request: null };
    const authenticator = this.#authentication.begin();
    for (;;) {
      const request = this.#build(localHost, seconds);
      authenticator.prepare(request, peer);
      this.#isBound = true;
      const reply = await new Promise<Reply>((resolve) => {
        signalling.begin(request, peer, localHost, {
          response: (response) => {
            if (response.status >= 200) resolve(response);
          },
          failed: () => resolve("unreachable"),
        });
      });
      if (reply === "unreachable" || !authenticator.challenged(reply, peer)) return { reply, request };
      // Closed meanwhile: a retry now would register us again after the unregistration.
      if (this.#closing && seconds > 0) return { reply, request };
    }
  }

  #build(localHost: string, seconds: number): SipRequest {
    const { aor, contactUser, peer, registrar } = this.#args;
    this.#cseq++;
    const headers = new SipHeaders()
      .add("Max-Forwards", "70")
      .add("From", `<${aor}>;tag=${this.#fromTag}`)
      .add("To", `<${aor}>`)
      .add("Call-ID", this.#callId)
      .add("CSeq", `${this.#cseq} REGISTER`)
      .add("Contact", this.#signalling.contact(peer, localHost, contactUser))
      .add("Expires", String(seconds));
    return {
      kind: "request", method: "REGISTER", uri: registrar, headers, body: Buffer.alloc(0),
    };
  }

  #publish(state: RegistrationState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#signalling.log.info({ registrar: this.#args.registrar, state }, "SIP registration");
    this.#onState(state);
  }

  #plan(delayMs: number): void {
    this.#next = this.#signalling.system.after(delayMs, () => void this.keep());
  }

  /** Longer after a refusal: that is likely to last, and retries lock accounts. Half is jitter. */
  #retryMs(reply: Reply, isAway: boolean): number {
    const least = isAway ? LIMITS.registerRetryMinMs : LIMITS.registerRefusedRetryMs;
    const grown = least * 2 ** Math.min(this.#failures - 1, 16);
    const delayMs = Math.min(LIMITS.registerRetryMaxMs, grown);
    const wantedS = reply === "unreachable" ? null : secondsOf(reply.headers, "Retry-After");
    const chance = this.#signalling.system.randomBytes(1).readUInt8() / 255;
    const jittered = delayMs * (0.5 + chance / 2);
    return Math.max(jittered, Math.min(wantedS ?? 0, LIMITS.retryAfterMaxS) * 1000);
  }
}

function grantedS(request: SipRequest, response: SipResponse, askedS: number): number {
  const ours = parseNameAddr(request.headers.get("Contact") ?? "");
  const granted = response.headers.all("Contact")
    .map(parseNameAddr)
    .find((contact) => contact && ours && isSameContact(contact.uri, ours.uri))
    ?.params.get("expires");
  const seconds = Number(granted ?? secondsOf(response.headers, "Expires") ?? askedS);
  const isSane = Number.isInteger(seconds) && seconds > 0;
  return Math.min(
    LIMITS.registerExpiresMaxS, Math.max(LIMITS.registerExpiresMinS, isSane ? seconds : askedS),
  );
}

function isSameContact(one: string, other: string): boolean {
  const [a, b] = [parseUri(one), parseUri(other)];
  return a !== null && b !== null && a.user === b.user && a.port === b.port
    && plainHost(a.host) === plainHost(b.host);
}
