// All WebRTC pages behind one UDP port, so that a firewall needs one hole however many call. Bytes
// are assigned to a call by the place they come from, and a place by a connectivity check with the
// name and password of a call (ICE-lite, RFC 8445). Runs in workers/web-peers.ts.
import type { RemoteInfo, Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import { loadOpus } from "#audio/opus.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { machineAddresses } from "#core/networks.ts";
import { openMediaSocket } from "#providers/carriers/sip/media/rtp-sockets.ts";
import { forSocket, plainHost } from "#providers/carriers/sip/transport/peer.ts";
import { createCertificate, type Certificate } from "./dtls.ts";
import { openPeerOpus, Peer } from "./peer.ts";
import type { PeerEvent, PeersConfig, WebPeer, WebPeers } from "./port.ts";
import { buildAnswer, readOffer, type PageOffer } from "./sdp.ts";
import { buildCheckAnswer, parseCheck, type Place } from "./stun.ts";

const USERNAME_BYTES = 6;
const PASSWORD_BYTES = 18;
/** A page has several when it has several networks or changes them; the oldest is forgotten. */
const PLACES_PER_PEER_MAX = 8;
/** A safety limit; calls are bounded elsewhere, so it is never reached. */
const PEERS_MAX = 2000;
const CANDIDATES_MAX = 8;
const ANYWHERE = new Set(["0.0.0.0", "::"]);

interface Known {
  peer: Peer;
  username: string;
  password: string;
  places: string[];
}

interface OpenPeers extends WebPeers {
  close(): void;
}

/** Rejects when the port cannot be bound. */
export async function openPeers(
  config: PeersConfig, { system, log }: { system: System; log: Logger },
): Promise<OpenPeers> {
  const [socket, certificate] = await Promise.all([
    openMediaSocket(config.host, config.port), createCertificate(), loadOpus(),
  ]);
  socket.on("error", (error) => log.warn({ err: error }, "the WebRTC socket failed"));
  return new Peers(config, { socket, certificate, system, log });
}

const keyOf = ({ address, port }: Place): string => `${address}|${port}`;

class Peers implements OpenPeers {
  readonly #config: PeersConfig;
  readonly #socket: Socket;
  readonly #certificate: Certificate;
  readonly #system: System;
  readonly #log: Logger;
  readonly #byName = new Map<string, Known>();
  readonly #byPlace = new Map<string, Known>();

  constructor(
    config: PeersConfig,
    parts: { socket: Socket; certificate: Certificate; system: System; log: Logger },
  ) {
    this.#config = config;
    this.#socket = parts.socket;
    this.#certificate = parts.certificate;
    this.#system = parts.system;
    this.#log = parts.log;
    this.#socket.on("message", (bytes, from) => this.#receive(bytes, placeOf(from)));
  }

  open(sdp: string, publish: (event: PeerEvent) => void): WebPeer {
    const offer = readOffer(sdp);
    if (typeof offer === "string") return refused(offer, publish);
    if (this.#byName.size >= PEERS_MAX) return refused("There are too many web calls.", publish);
    let known: Known | null = null;
    let isClosed = false;
    const close = (): void => {
      isClosed = true;
      if (known) this.#forget(known);
    };
    const lost = (): void => {
      if (isClosed) return;
      close();
      publish({ kind: "lost" });
    };
    const publishOpen = (event: PeerEvent): void => {
      if (!isClosed) publish(event);
    };
    this.#connect(offer, publishOpen, lost).then(({ known: made, answer }) => {
      known = made;
      if (isClosed) this.#forget(made);
      else publish({ kind: "answer", sdp: answer });
    }, (error: unknown) => {
      this.#log.error({ err: error }, "could not set up WebRTC for a web call");
      lost();
    });
    return { send: (frame) => known?.peer.send(frame), close };
  }

  close(): void {
    for (const known of [...this.#byName.values()]) this.#forget(known);
    this.#socket.close();
  }

  async #connect(
    offer: PageOffer, publish: (event: PeerEvent) => void, onLost: () => void,
  ): Promise<{ known: Known; answer: string }> {
    const opus = await openPeerOpus();
    const random = this.#system.randomBytes(USERNAME_BYTES + PASSWORD_BYTES + 8);
    const username = random.subarray(0, USERNAME_BYTES).toString("hex");
    const password = random.subarray(USERNAME_BYTES, USERNAME_BYTES + PASSWORD_BYTES).toString("hex");
    const ssrc = random.readUInt32BE(USERNAME_BYTES + PASSWORD_BYTES);
    const cname = random.subarray(-4).toString("hex");
    const peer = new Peer({
      offer, opus, ssrc, cname, onLost,
      onAudio: (pcm) => publish({ kind: "audio", pcm }),
      onQuality: (quality) => publish({ kind: "quality", quality }),
      certificate: this.#certificate,
      transmit: (bytes, to) => this.#transmit(bytes, to),
      system: this.#system,
      log: this.#log,
    });
    const known = { peer, username, password, places: [] };
    this.#byName.set(username, known);
    const answer = buildAnswer({
      offer, username, password, ssrc, cname,
      places: this.#places(), fingerprint: this.#certificate.fingerprint,
      sessionId: String(this.#system.now()),
    });
    return { known, answer };
  }

  #forget(known: Known): void {
    known.peer.close();
    this.#byName.delete(known.username);
    for (const place of known.places.splice(0)) this.#byPlace.delete(place);
  }

  #places(): Place[] {
    const { host, publicHosts } = this.#config;
    const { port } = this.#socket.address();
    const bound = ANYWHERE.has(host) ? ownAddresses(host) : [host];
    const hosts = publicHosts.length > 0 ? publicHosts : bound;
    return hosts.slice(0, CANDIDATES_MAX).map((address) => ({ address, port }));
  }

  #transmit(bytes: Buffer, { address, port }: Place): void {
    // A packet that cannot be sent counts as lost in the network.
    this.#socket.send(bytes, port, forSocket(this.#config.host, address), () => undefined);
  }

  #receive(bytes: Buffer, from: Place): void {
    const [first = 255] = bytes;
    // A forged source port of 0 could not be answered.
    if (from.port === 0) return;
    if (first > 3) return this.#byPlace.get(keyOf(from))?.peer.receive(bytes);
    const check = parseCheck(bytes);
    const known = check && this.#byName.get(check.username);
    if (!known || !check.isSignedWith(known.password)) return;
    this.#remember(known, from);
    this.#transmit(buildCheckAnswer(check, from, known.password), from);
    if (check.isChosen) known.peer.choose(from);
  }

  #remember(known: Known, from: Place): void {
    const key = keyOf(from);
    const before = this.#byPlace.get(key);
    if (before === known) return;
    before?.places.splice(before.places.indexOf(key), 1);
    this.#byPlace.set(key, known);
    known.places.push(key);
    if (known.places.length <= PLACES_PER_PEER_MAX) return;
    const oldest = known.places.shift();
    if (oldest !== undefined) this.#byPlace.delete(oldest);
  }
}

function refused(reason: string, publish: (event: PeerEvent) => void): WebPeer {
  queueMicrotask(() => publish({ kind: "refused", reason }));
  return { send: () => undefined, close: () => undefined };
}

/** An IPv4-mapped IPv6 address becomes plain IPv4. */
const placeOf = ({ address, port }: RemoteInfo): Place => ({ address: plainHost(address), port });

/** The addresses of this machine that a socket bound to `host` is reached at. */
function ownAddresses(host: string): string[] {
  const all = machineAddresses().filter(({ address, family }) =>
    (family === "IPv4" || isIPv6(host)) && !address.toLowerCase().startsWith("fe80:"));
  const outward = all.filter(({ internal }) => !internal);
  // Loopback addresses come last, for a machine that has no other network.
  return [...outward, ...all.filter(({ internal }) => internal)].map(({ address }) => address);
}
