// Media sessions over real sockets, controlled by a test: a telephone's socket, a session on a
// manual clock, and packets whose sound encodes their number.
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { createLogger } from "#core/logger.ts";
import { LAWS } from "#providers/carriers/sip/media/g711.ts";
import {
  openRtpSession, type RtpSession, type RtpSessionOptions,
} from "#providers/carriers/sip/media/rtp-session.ts";
import {
  parseRtp, RTP_HEADER_BYTES, writeRtpHeader, type RtpPacket,
} from "#providers/carriers/sip/media/rtp.ts";
import type { Agreed } from "#providers/carriers/sip/grammar/sdp.ts";
import { createManualSystem } from "#support/manual-clock.ts";

export const HOST = "127.0.0.1";
export const FRAME = 160;
const log = createLogger("silent");
export const silence = new Int16Array(FRAME);

/** A telephone's socket: what came is kept, and can be waited for. */
export interface Phone {
  socket: Socket;
  port: number;
  send(bytes: Buffer, port: number): Promise<void>;
  next(): Promise<{ bytes: Buffer; from: RemoteInfo }>;
  nextRtp(): Promise<RtpPacket>;
  /** How many packets came that were not read yet. */
  came(): number;
}

export async function openPhone(t: TestContext, host = HOST): Promise<Phone> {
  const socket = createSocket("udp4").bind(0, host);
  await once(socket, "listening");
  t.after(() => socket.close());
  const came: { bytes: Buffer; from: RemoteInfo }[] = [];
  socket.on("message", (bytes, from) => {
    came.push({ bytes, from });
    socket.emit("kept");
  });
  const phone: Phone = {
    socket,
    port: socket.address().port,
    send: (bytes, port) => new Promise((resolve, reject) => {
      socket.send(bytes, port, HOST, (error) => (error ? reject(error) : resolve()));
    }),
    next: async () => {
      while (came.length === 0) await once(socket, "kept");
      return came.shift()!;
    },
    nextRtp: async () => parseRtp((await phone.next()).bytes)!,
    came: () => came.length,
  };
  return phone;
}

export async function openSession(t: TestContext, options: Partial<RtpSessionOptions> = {}) {
  const system = createManualSystem();
  const heard: Int16Array[] = [];
  const told: string[] = [];
  const session = await openRtpSession({
    host: HOST,
    ports: null,
    system,
    log,
    rate: 8000,
    codecs: ["PCMU", "PCMA"],
    mayReach: () => true,
    onAudio: (pcm) => heard.push(pcm),
    onDtmf: (digit) => told.push(digit),
    onSound: () => undefined, onTimeout: () => told.push("timeout"),
    ...options,
  });
  t.after(() => session.close());
  return { session, system, heard, told };
}

export const agreedOf = (port: number, change: Partial<Agreed> = {}): Agreed => ({
  codec: "PCMU", payloadType: 0, telephoneEvent: 101, eventRate: 8000, comfortNoise: null,
  remote: { host: HOST, port, rtcpPort: null }, isHeld: false, srtp: null, ...change,
});

export function packetOf(number: number, change: Partial<RtpPacket> = {}): Buffer {
  const payload = change.payload ?? Buffer.alloc(FRAME, codeOf(number));
  const header = {
    payloadType: 0, marker: false, sequence: number & 0xffff, timestamp: number * FRAME, ssrc: 77,
    ...change,
  };
  const packet = Buffer.alloc(RTP_HEADER_BYTES + payload.length);
  writeRtpHeader(packet, header);
  packet.set(payload, RTP_HEADER_BYTES);
  return packet;
}

/** Loud codes, different ones for neighbouring packets. */
export const codeOf = (number: number): number => number % 64;
export const sampleOf = (number: number): number => LAWS.PCMU.samples[codeOf(number)]!;

/** How many packets the session has counted. */
export function countOf(session: RtpSession): number {
  const quality = session.quality();
  return (quality?.packetsReceived ?? 0) + (quality?.packetsDuplicate ?? 0);
}

/** Resolves once the session has counted so many packets; loopback keeps their order. */
export async function received(session: RtpSession, count: number): Promise<void> {
  // No event reports a counted packet; the test's timeout ends this loop.
  while (countOf(session) < count) await new Promise((resolve) => setImmediate(resolve));
}

/** Resolves once what was sent to a session has been read, though it may not count. */
export async function settled(): Promise<void> {
  // What was sent over loopback is there already; each turn of the loop reads many packets.
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Sends these and pulls a frame after each, as a call does. */
export async function talk(
  phone: Phone, { session, system }: Awaited<ReturnType<typeof openSession>>, packets: Buffer[],
): Promise<void> {
  for (const packet of packets) {
    const before = countOf(session);
    await phone.send(packet, session.port);
    await received(session, before + 1);
    system.advance(20);
    session.send(silence);
  }
}

export const numbers = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) => from + at);
