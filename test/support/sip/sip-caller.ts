// A caller that the test controls: it sends the signalling that the test says over UDP, and sound
// in real time from sockets that can be changed in the middle of the stream. For what installable
// telephones do not do.
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { encodeG711, LAWS } from "#providers/carriers/sip/media/g711.ts";
import type { SipMessage, SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import {
  parseRtp, RTP_HEADER_BYTES, writeRtpHeader, type RtpPacket,
} from "#providers/carriers/sip/media/rtp.ts";
import { createWire, requestText, responseText, type Wire } from "./sip-phones.ts";

const HOST = "127.0.0.1";
const FRAME = 160;
const FRAME_MS = 20;
const SILENCE = 0xff;

export interface PacketHeard extends RtpPacket {
  atMs: number;
  /** The socket it came to, from 0. */
  socket: number;
}

export interface Talker {
  /** The port of the first socket. */
  port: number;
  heard: PacketHeard[];
  /** What becomes of the packet with that number; by default every one is sent. */
  fate: (number: number) => "sent" | "lost" | "twice" | "late";
  /** Says this after what is being said; silence follows. */
  say(pcm: Int16Array): void;
  /** Begins to send: silence until something is to be said. */
  start(port: number): void;
  /** Sends the same stream from another socket from now on; resolves to when. */
  move(): Promise<number>;
  /** Packets sent up to now. */
  sent(): number;
  stop(): void;
}

export async function openTalker(): Promise<Talker> {
  const sockets: Socket[] = [];
  const heard: PacketHeard[] = [];
  let to = 0;
  let number = 0;
  let sent = 0;
  let waiting = new Uint8Array(0);
  let kept: Buffer | null = null;
  let timer: NodeJS.Timeout | null = null;
  const open = async (): Promise<Socket> => {
    const socket = createSocket({ type: "udp4", recvBufferSize: 1024 * 1024 });
    socket.bind(0, HOST);
    await once(socket, "listening");
    const place = sockets.push(socket) - 1;
    socket.on("message", (bytes: Buffer) => {
      const packet = parseRtp(bytes);
      if (packet) heard.push({ ...packet, atMs: performance.now(), socket: place });
    });
    return socket;
  };
  const first = await open();
  const send = (packet: Buffer): void => {
    sent += 1;
    sockets.at(-1)?.send(packet, to, HOST);
  };
  const tick = (): void => {
    const packet = Buffer.alloc(RTP_HEADER_BYTES + FRAME, SILENCE);
    writeRtpHeader(packet, {
      payloadType: 0, marker: number === 0, sequence: number, timestamp: number * FRAME, ssrc: 4711,
    });
    packet.set(waiting.subarray(0, FRAME), RTP_HEADER_BYTES);
    waiting = waiting.subarray(FRAME);
    const fate = talker.fate(number);
    number += 1;
    const late = kept;
    kept = fate === "late" ? packet : null;
    if (fate === "sent" || fate === "twice") send(packet);
    if (fate === "twice") send(packet);
    if (late) send(late);
  };
  const talker: Talker = {
    port: first.address().port,
    heard,
    fate: () => "sent",
    say: (pcm) => {
      const codes = new Uint8Array(Math.ceil(pcm.length / FRAME) * FRAME).fill(SILENCE);
      codes.set(encodeG711(LAWS.PCMU, pcm));
      const all = new Uint8Array(waiting.length + codes.length);
      all.set(waiting);
      all.set(codes, waiting.length);
      waiting = all;
    },
    start: (port) => {
      to = port;
      const fromMs = performance.now();
      timer = setInterval(() => {
        while (number * FRAME_MS <= performance.now() - fromMs) tick();
      }, 5);
    },
    move: async () => {
      await open();
      return performance.now();
    },
    sent: () => sent,
    stop: () => {
      if (timer) clearInterval(timer);
      for (const socket of sockets.splice(0)) socket.close();
    },
  };
  return talker;
}

export interface SdpOptions {
  direction?: "sendrecv" | "sendonly" | "inactive";
  /** The address in the `c=` line of its SDP. */
  host?: string;
  /** It accepts telephone events. */
  hasEvents?: boolean;
}

export const sdpAt = (
  port: number, { direction = "sendrecv", host = HOST, hasEvents = true }: SdpOptions = {},
): string => [
  "v=0", `o=caller 1 1 IN IP4 ${HOST}`, "s=-", `c=IN IP4 ${host}`, "t=0 0",
  `m=audio ${port} RTP/AVP 0${hasEvents ? " 101" : ""}`, "a=rtpmap:0 PCMU/8000",
  ...(hasEvents ? ["a=rtpmap:101 telephone-event/8000"] : []), `a=${direction}`, "",
].join("\r\n");

export interface SipCaller {
  wire: Wire;
  talker: Talker;
  /** Rings the number. */
  ring(sdp?: SdpOptions): void;
  cancel(): void;
  /** Waits for the 200 to what was sent last, and acknowledges it; resolves to the RTP port. */
  acknowledge(): Promise<number>;
  /** Makes a whole call: rings, acknowledges, and begins to send sound. */
  call(sdp?: SdpOptions): Promise<void>;
  /** Sends another offer, and acknowledges the answer. */
  offer(sdp: SdpOptions, method?: "INVITE" | "UPDATE"): Promise<SipMessage>;
  say(method: string, headers?: Record<string, string>, body?: string): void;
  answer(request: SipMessage, status: number): void;
  close(): Promise<void>;
}

let callers = 0;

export async function openCaller(to: number, number: string): Promise<SipCaller> {
  const [wire, talker] = [await createWire(), await openTalker()];
  const place = (callers += 1);
  const branch = `z9hG4bKcaller${place}`;
  const within: Record<string, string> = {
    "From": `<sip:+14155550199@${HOST}>;tag=caller${place}`,
    "To": `<sip:${number}@${HOST}>`,
    "Call-ID": `caller-${place}-${talker.port}`,
  };
  let cseq = 0;
  let uri = `sip:${number}@${HOST}:${to}`;
  let invite: Record<string, string> = {};
  const post = (method: string, headers: Record<string, string>, body = ""): void => {
    const text = requestText(method, wire, { ...within, ...headers }, body);
    wire.say(to, text.replace(/^\S+ \S+/, `${method} ${uri}`));
  };
  const say: SipCaller["say"] = (method, headers = {}, body = "") => {
    cseq += 1;
    post(method, { CSeq: `${cseq} ${method}`, ...headers }, body);
  };
  const answerTo = async (): Promise<SipMessage> => {
    const mine = ({ message }: { message: SipMessage }): boolean =>
      message.headers.get("CSeq")?.startsWith(`${cseq} `) === true;
    for (let place = 0; ; place += 1) {
      const event = await wire.heard.event("200", place);
      if (mine(event)) return event.message;
    }
  };
  const acknowledged = async (): Promise<SipMessage> => {
    const answer = await answerTo();
    within.To = answer.headers.get("To") ?? "";
    uri = /<(sip:[^>]+)>/.exec(answer.headers.get("Contact") ?? "")?.[1] ?? uri;
    if (answer.headers.get("CSeq")?.endsWith("INVITE")) post("ACK", { CSeq: `${cseq} ACK` });
    return answer;
  };
  const caller: SipCaller = {
    wire,
    talker,
    ring: (sdp = {}) => {
      const via = `SIP/2.0/UDP ${HOST}:${wire.peer.port};branch=${branch};rport`;
      invite = { Via: via };
      say("INVITE", invite, sdpAt(talker.port, sdp));
    },
    cancel: () => post("CANCEL", { ...invite, CSeq: `${cseq} CANCEL` }),
    acknowledge: async () => {
      const answer = await acknowledged();
      const port = Number(/m=audio (\d+)/.exec(answer.body.toString())?.[1]);
      assert.ok(port > 0, answer.body.toString());
      return port;
    },
    call: async (sdp = {}) => {
      caller.ring(sdp);
      talker.start(await caller.acknowledge());
    },
    offer: async (sdp, method = "INVITE") => {
      say(method, {}, sdpAt(talker.port, sdp));
      return acknowledged();
    },
    say,
    answer: (request, status) => wire.say(to, responseText(request as SipRequest, status)),
    close: async () => {
      talker.stop();
      await wire.close();
    },
  };
  return caller;
}
