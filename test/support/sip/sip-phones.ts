// Telephones for tests of the SIP signalling: real user agents on 127.0.0.1 whose calls and dialogs
// record what they receive, and a bare UDP socket that says what a test makes it say.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { createLogger } from "#core/logger.ts";
import { createSystem, type System } from "#core/system.ts";
import { SipHeaders } from "#providers/carriers/sip/grammar/headers.ts";
import {
  parseMessage, type SipMessage, type SipRequest, type SipResponse,
} from "#providers/carriers/sip/grammar/message.ts";
import { SIGNALLING_LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";
import type {
  Dialog, DialogEnd, IncomingInvite, OutgoingCall,
} from "#providers/carriers/sip/dialogs/call-types.ts";
import type { CallRequest } from "#providers/carriers/sip/dialogs/outgoing.ts";
import {
  createUserAgent, type UserAgent, type UserAgentOptions,
} from "#providers/carriers/sip/dialogs/user-agent.ts";
import type { Peer } from "#providers/carriers/sip/transport/peer.ts";
import type { ManualSystem } from "#support/manual-clock.ts";
import { createReceived, type Received } from "#support/received.ts";

export const SDP = (mark: string): string =>
  `v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=${mark}\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n` +
  "m=audio 4000 RTP/AVP 0\r\n";

export type Heard =
  | { kind: "progress"; status: number; sdp: string | null }
  | { kind: "answered"; dialog: Dialog; sdp: string }
  | { kind: "failed"; status: number; reason: string; q850: number | null }
  | { kind: "confirmed"; sdp: string | null }
  | { kind: "reinvite"; sdp: string | null }
  | { kind: "info"; key: string }
  | { kind: "referred"; status: number }
  | { kind: "ended"; cause: DialogEnd };

export type Reply = (sdp: string | null) => string | number;

export interface Phone {
  agent: UserAgent;
  peer: Peer;
  invites: Received<{ kind: "invite"; invite: IncomingInvite }>;
  invite(number?: number): Promise<IncomingInvite>;
  /** Rings the other phone. */
  call(to: Peer, changes?: Partial<CallRequest>, reply?: Reply): Placed;
  close(): Promise<void>;
}

export interface Placed {
  call: OutgoingCall;
  received: Received<Heard>;
}

export interface PhoneOptions extends Partial<UserAgentOptions> {
  transport?: Peer["transport"];
  /** Called before `onInvite` returns. */
  atOnce?: (invite: IncomingInvite) => void;
}

export async function createPhone(
  { atOnce, transport = "udp", ...options }: PhoneOptions = {},
): Promise<Phone> {
  const system: System = options.system ?? createSystem();
  const invites = createReceived<{ kind: "invite"; invite: IncomingInvite }>();
  const agent = await createUserAgent({
    host: "127.0.0.1", port: 0, publicHost: null, tls: null, userAgent: "Phone",
    mayReach: () => true, system, log: createLogger("silent"),
    onInvite: (invite) => {
      atOnce?.(invite);
      invites.receive({ kind: "invite", invite });
    },
    ...options,
  });
  const port = transport === "tls" ? agent.tlsPort! : agent.port;
  return {
    agent,
    peer: { host: "127.0.0.1", port, transport },
    invites,
    invite: async (number = 0) => (await invites.event("invite", number)).invite,
    call(to, changes = {}, reply = () => SDP("reply")) {
      const received = createReceived<Heard>();
      const call = agent.call({
        peer: to, uri: "sip:bob@example.org", from: "\"Alice\" <sip:alice@example.org>",
        to: "sip:bob@example.org", sdp: SDP("offer"), credentials: null, ringingMs: 60_000,
        ...changes,
      }, {
        progress: (status, sdp) => received.receive({ kind: "progress", status, sdp }),
        answered: (dialog, sdp) => {
          listen(dialog, received, reply);
          received.receive({ kind: "answered", dialog, sdp });
        },
        failed: (status, reason, q850) => received.receive({ kind: "failed", status, reason, q850 }),
      });
      return { call, received };
    },
    close: async () => {
      let isClosed = false;
      const closing = agent.close().then(() => (isClosed = true));
      // A manual clock has to be advanced until the timeouts of the close have passed.
      while (!isClosed && "advance" in system) {
        (system as ManualSystem).advance(SIGNALLING_LIMITS.farewellMs);
        await setImmediate();
      }
      await closing;
    },
  };
}

/** Records the events of the dialog. */
export function listen(
  dialog: Dialog, received = createReceived<Heard>(), reply: Reply = () => SDP("reply"),
): Received<Heard> {
  dialog.setEvents({
    confirmed: (sdp) => received.receive({ kind: "confirmed", sdp }),
    reinvite: (sdp) => {
      received.receive({ kind: "reinvite", sdp });
      return reply(sdp);
    },
    info: (key) => received.receive({ kind: "info", key }),
    referred: (status) => received.receive({ kind: "referred", status }),
    ended: (cause) => received.receive({ kind: "ended", cause }),
  });
  return received;
}

export interface Wire {
  peer: Peer;
  heard: {
    events: WireHeard[];
    kinds(): string[];
    /** The event with this method or status. */
    event(kind: string, number?: number): Promise<WireHeard>;
  };
  say(to: Peer | number, text: string | Buffer): void;
  close(): Promise<void>;
}

export interface WireHeard {
  kind: string;
  message: SipMessage;
  port: number;
}

/** `host`: another address of this machine, so that requests come from somewhere else. */
export async function createWire(host = "127.0.0.1"): Promise<Wire> {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  socket.bind(0, host);
  await once(socket, "listening");
  const heard = createReceived<WireHeard>();
  socket.on("message", (bytes, { port }) => {
    const parsed = parseMessage(bytes);
    if (parsed.kind !== "message") return;
    const { message } = parsed;
    const kind = message.kind === "request" ? message.method : String(message.status);
    heard.receive({ kind, message, port });
  });
  return {
    peer: { host, port: socket.address().port, transport: "udp" },
    heard: {
      events: heard.events,
      kinds: heard.kinds,
      event: (kind, number) => heard.event<string>(kind, number),
    },
    say: (to, text) => {
      const port = typeof to === "number" ? to : to.port;
      socket.send(text, port, host.includes(":") ? host : "127.0.0.1");
    },
    close: () => new Promise((resolve) => void socket.close(() => resolve())),
  };
}

/** Phones and wires that are closed together. */
export function createExchange() {
  const open: (Phone | Wire)[] = [];
  const kept = async <It extends Phone | Wire>(making: Promise<It>): Promise<It> => {
    const made = await making;
    open.push(made);
    return made;
  };
  return {
    phone: (options?: PhoneOptions) => kept(createPhone(options)),
    wire: (host?: string) => kept(createWire(host)),
    close: () => Promise.all(open.map((it) => it.close())),
  };
}

let numbers = 0;

/** A request as a text; headers given replace those it would have, null leaves one out. */
export function requestText(
  method: string, wire: Wire, changes: Record<string, string | null> = {}, body = "",
): string {
  const number = ++numbers;
  const headers: Record<string, string | null> = {
    "Via": `SIP/2.0/UDP ${wire.peer.host}:${wire.peer.port};branch=z9hG4bKw${number};rport`,
    "Max-Forwards": "70",
    "From": `<sip:wire@example.org>;tag=w${number}`,
    "To": "<sip:bob@example.org>",
    "Call-ID": `wire-${number}`,
    "CSeq": `1 ${method}`,
    "Contact": `<sip:wire@${wire.peer.host}:${wire.peer.port}>`,
    ...(body === "" ? {} : { "Content-Type": "application/sdp" }),
    ...changes,
  };
  const lines = Object.entries(headers)
    .flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]));
  const head = [`${method} sip:bob@127.0.0.1 SIP/2.0`, ...lines].join("\r\n");
  return `${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** The answer to a request, as a text. */
export function responseText(
  request: SipMessage, status: number, extra: string[] = [], body = "", tag = "wire",
): string {
  const { headers } = request;
  const to = headers.get("To") ?? "";
  const lines = [
    `SIP/2.0 ${status} Said`,
    ...headers.all("Via").map((via) => `Via: ${via}`),
    `From: ${headers.get("From")}`,
    `To: ${to.includes(";tag=") || status === 100 ? to : `${to};tag=${tag}`}`,
    `Call-ID: ${headers.get("Call-ID")}`,
    `CSeq: ${headers.get("CSeq")}`,
    ...extra,
    ...(body === "" ? [] : ["Content-Type: application/sdp"]),
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

export function makeRequest(method: string, branch: string, transport = "UDP"): SipRequest {
  const headers = new SipHeaders()
    .add("Via", `SIP/2.0/${transport} 192.0.2.1:5060;branch=${branch}`)
    .add("Route", "<sip:192.0.2.9;lr>")
    .add("Max-Forwards", "70")
    .add("From", "<sip:a@example.org>;tag=a")
    .add("To", "<sip:b@example.org>")
    .add("Call-ID", "one")
    .add("CSeq", `1 ${method}`);
  return { kind: "request", method, uri: "sip:b@example.org", headers, body: Buffer.alloc(0) };
}

export function makeResponse(request: SipRequest, status: number, tag = "b"): SipResponse {
  const parsed = parseMessage(Buffer.from(responseText(request, status, [], "", tag)));
  if (parsed.kind !== "message" || parsed.message.kind !== "response") throw new Error("no response");
  return parsed.message;
}

/** A wire calls a phone, which answers; the ACK and what follows is for `say`. */
export async function wireCall(from: Wire, to: Phone, changes: Record<string, string | null> = {}) {
  const text = requestText("INVITE", from, changes, SDP("wire"));
  from.say(to.peer, text);
  const invite = await to.invite(to.invites.events.length);
  const dialog = invite.accept(SDP("answer"));
  const received = listen(dialog);
  const { message } = await from.heard.event("200", from.heard.events
    .filter(({ kind }) => kind === "200").length);
  const within = {
    "From": message.headers.get("From"),
    "To": message.headers.get("To"),
    "Call-ID": message.headers.get("Call-ID"),
  };
  const say = (method: string, cseq: number, extra: Record<string, string | null> = {}, body = "") =>
    from.say(to.peer, requestText(method, from, {
      ...within, CSeq: `${cseq} ${method}`, ...extra,
    }, body));
  return { text, invite, dialog, received, answer: message, within, say };
}
