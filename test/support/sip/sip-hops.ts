// For tests of calls that may go to several addresses: a carrier with one trunk whose name resolves
// to them, and a bare TCP server that records what connections bring it and says what a test makes
// it say.
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { createLogger } from "#core/logger.ts";
import type { LegEvent, Offer } from "#providers/carriers/port.ts";
import { parseVia } from "#providers/carriers/sip/grammar/headers.ts";
import {
  createFramer, parseMessage, type SipMessage, type SipRequest,
} from "#providers/carriers/sip/grammar/message.ts";
import type { Peer } from "#providers/carriers/sip/transport/peer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";
import { createSipCarrier, type SipCarrier } from "#providers/carriers/sip/sip.ts";
import type { Names } from "#providers/carriers/sip/trunks/trunk-roster.ts";
import type { TrunkSetup } from "#providers/carriers/sip/trunks/trunk.ts";
import { createManualSystem, type ManualSystem } from "#support/manual-clock.ts";
import { requestText, responseText, SDP, type Wire } from "./sip-phones.ts";
import { createReceived } from "#support/received.ts";

export const trunkOf = (changes: Partial<TrunkSetup> = {}): TrunkSetup => ({
  id: 1, accountId: 1, trunkType: "number", phoneNumber: "+14155550100", username: "alice", password: "s3cret",
  address: "sip.example.com", port: null, transport: "udp", inboundAuth: "ip",
  allowedNetworks: ["127.0.0.1"], registerS: null, outboundProxy: false, requireSrtp: false, codecs: ["pcmu", "pcma"],
  ...changes,
});

/** A carrier with one trunk whose name resolves to these peers, best first. */
export async function createCarrierTo(
  hops: readonly { peer: Peer }[], changes: Partial<TrunkSetup> = {},
  mayReach: (address: string) => boolean = () => true, host = "127.0.0.1",
  onOffer: (offer: Offer) => void = () => undefined,
) {
  const system = createManualSystem();
  const names: Names = {
    services: () => Promise.resolve(hops.map(({ peer }) =>
      ({ name: `at-${peer.host}`, port: peer.port }))),
    addresses: (name) => Promise.resolve([name.slice("at-".length)]),
  };
  const carrier = await createSipCarrier({
    host, port: 0, publicHost: null, tls: null, rtpPorts: null, mayReach,
    onOffer, names, system, log: createLogger("silent"),
  });
  carrier.setTrunks([trunkOf(changes)]);
  const at: Peer = { host: "127.0.0.1", port: carrier.port, transport: "udp" };
  const dial = (ringingMs = 30_000) => {
    const received = createReceived<LegEvent>();
    const leg = carrier.dial(
      { rate: 8000, to: "+14155550199", from: null, trunkId: 1, ringingMs }, received.receive);
    return { received, leg };
  };
  return { system, at, dial, inbound: carrier.inbound, close: () => closing(carrier, system) };
}

/** The clock is manual: it is advanced until the timeouts of the close have passed. */
async function closing(carrier: SipCarrier, system: ManualSystem): Promise<void> {
  const isClosed = carrier.close().then(() => true);
  const nextTurn = () => new Promise<false>((resolve) => setImmediate(() => resolve(false)));
  while (!await Promise.race([isClosed, nextTurn()])) system.advance(LIMITS.farewellMs);
}

export interface TcpWire {
  peer: Peer;
  heard: Wire["heard"];
  /** Sends over the connection that was opened last. */
  say(text: string): void;
  close(): Promise<unknown>;
}

export async function createTcpWire(): Promise<TcpWire> {
  const heard = createReceived<{ kind: string; message: SipMessage; port: number }>();
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    const framer = createFramer();
    socket.on("error", () => undefined).on("data", (bytes: Buffer) => {
      for (const frame of framer.push(bytes).frames) {
        const parsed = parseMessage(frame);
        if (parsed.kind !== "message") continue;
        const { message } = parsed;
        const kind = message.kind === "request" ? message.method : String(message.status);
        heard.receive({ kind, message, port: socket.remotePort! });
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    peer: { host: "127.0.0.1", port: (server.address() as AddressInfo).port, transport: "tcp" },
    heard: {
      events: heard.events,
      kinds: heard.kinds,
      event: (kind, number) => heard.event<string>(kind, number),
    },
    say: (text) => void sockets.at(-1)!.write(text),
    close: () => new Promise((resolve) => {
      for (const socket of sockets) socket.destroy();
      server.close(resolve);
    }),
  };
}

export const request = ({ message }: { message: unknown }) => message as SipRequest;
export const inviteAt = async (at: Wire | TcpWire, number = 0) =>
  request(await at.heard.event("INVITE", number));
export const branchOf = ({ headers }: SipRequest) => parseVia(headers.get("Via")!)!.branch;
export const contactOf = ({ peer }: { peer: Peer }) =>
  `Contact: <sip:wire@${peer.host}:${peer.port};transport=${peer.transport}>`;
export const answerOf = (at: { peer: Peer }, invite: SipRequest, tag = "wire") =>
  responseText(invite, 200, [contactOf(at)], SDP("answer"), tag);

/** Awaits the answer to an OPTIONS: all that was sent before it has arrived by then. */
export async function caughtUp(at: Wire, to: Peer): Promise<void> {
  const text = requestText("OPTIONS", at);
  const callId = /Call-ID: (.*)\r/.exec(text)![1];
  at.say(to, text);
  for (let number = 0; ; number += 1) {
    const { message } = await at.heard.event("200", number);
    if (message.headers.get("Call-ID") === callId) return;
  }
}

export const count = (at: Wire | TcpWire, kind: string) =>
  at.heard.kinds().filter((it) => it === kind).length;
