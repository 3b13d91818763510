// A server that takes calls over SIP, for tests with other people's telephones: trunks on
// 127.0.0.1, assistants that answer, and what becomes of the calls.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isFinal, type CallStatus } from "#features/calls/records/status.ts";
import type { CallResult } from "#support/api.ts";
import { newAssistant, startTestServer, type TestServer } from "#support/server.ts";
import { newTrunk } from "./sip-trunks.ts";
import { createReceived, type Received } from "#support/received.ts";

export interface CallNews {
  kind: string;
  callId: number;
}

interface WireEvent {
  type: string;
  call_id: number;
  status?: string;
  call?: { type?: string; assistant_phone_number?: string };
}

export interface SipWorld {
  server: TestServer;
  sipPort: number;
  /** `arrived <number>` and `<id> <status>` of calls; of the server's own account. */
  news: Received<CallNews>;
  /** A trunk whose telephones are on this machine; by default they need no credentials. */
  trunk(changes?: Record<string, unknown>, key?: string): Promise<{ id: number; number: string }>;
  /** An active assistant on a number, inbound by default. */
  assistant(
    phoneNumberId: number | null, changes?: Record<string, unknown>, key?: string,
  ): Promise<{ id: number; uuid: string }>;
  /** A trunk, and an assistant that answers at its number. */
  desk(changes?: Record<string, unknown>): Promise<{ number: string; trunkId: number }>;
  /** Has the assistant call the number; resolves to the call's id. */
  dial(assistantId: number, number: string, key?: string): Promise<number>;
  /** The call as the contract shows it, once it has the status; rejects when it never will. */
  when(callId: number, status: string): Promise<CallResult["body"]>;
  /** The call that comes in at the number; `before`: how many came in there before it. */
  nextCall(number: string, before?: number): Promise<number>;
  /** The statuses of the call that were reported so far. */
  statuses(callId: number): string[];
}

const isOver = (status: string): boolean => status !== "created" && isFinal(status as CallStatus);

let numbers = 0;
/** A number that nobody has had, from the range reserved for fiction. */
export const newNumber = (): string => `+141555501${String(numbers += 1).padStart(2, "0")}`;

export async function startSipWorld(env: Record<string, string> = {}): Promise<SipWorld> {
  const server = await startTestServer({
    env: {
      PARLEY_SIP_PORT: "0", PARLEY_SIP_HOST: "127.0.0.1", PARLEY_SPEECH: "loopback",
      PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8", ...env,
    },
  });
  const { sipPort } = server;
  await server.app.features.accounts.credit(server.accountId, 1_000_000_000);
  assert.ok(sipPort);
  const news = createReceived<CallNews>();
  const seen = new Map<number, string[]>();
  const told = new Set<number>();
  server.app.features.bus.subscribe(`account:${server.accountId}`, (notice) => {
    // The bus may deliver an event twice.
    if (notice.kind !== "committed" || told.has(notice.event.id)) return;
    told.add(notice.event.id);
    const event = JSON.parse(notice.event.json) as WireEvent;
    const status = event.type === "call_created" ? "created"
      : event.type === "call_status_changed" ? event.status : undefined;
    if (status === undefined) return;
    const of = seen.get(event.call_id) ?? [];
    seen.set(event.call_id, [...of, status]);
    if (event.call?.type === "inbound") {
      news.receive({ kind: `arrived ${event.call.assistant_phone_number}`, callId: event.call_id });
    }
    news.receive({ kind: `${event.call_id} ${status}`, callId: event.call_id });
    if (isOver(status)) news.receive({ kind: `${event.call_id} over`, callId: event.call_id });
  });
  const world: SipWorld = {
    server,
    sipPort,
    news,
    trunk: async (changes = {}, key = server.key) => {
      const number = newNumber();
      const made = await newTrunk(server, {
        phone_number: number, sip_address: "127.0.0.1", country_code: "US",
        inbound_authorization_type: "ip", allowed_inbound_ips: ["127.0.0.1"], ...changes,
      }, key);
      return { id: made.id, number: made.phone_number };
    },
    assistant: (phoneNumberId, changes = {}, key = server.key) => newAssistant(server, {
      status: "active", phone_number_id: phoneNumberId, post_call_evaluation: false,
      initial_message: "Hello", ...changes,
    }, key),
    desk: async (changes = {}) => {
      const { id: trunkId, number } = await world.trunk();
      await world.assistant(trunkId, changes);
      return { number, trunkId };
    },
    dial: async (assistantId, number, key = server.key) => {
      const { status, body } = await server.call("POST", "/user/make_call", {
        key, body: { assistant_id: assistantId, phone_number: number },
      });
      assert.equal(status, 200, JSON.stringify(body));
      return body.call_id as number;
    },
    when: async (callId, status) => {
      await Promise.race([`${callId} ${status}`, `${callId} over`].map((kind) =>
        news.event<string>(kind)));
      assert.ok(world.statuses(callId).includes(status), world.statuses(callId).join(", "));
      return (await server.call("GET", `/user/calls/${callId}`)).body;
    },
    nextCall: async (number, before = 0) =>
      (await news.event<string>(`arrived ${number}`, before)).callId,
    statuses: (callId) => seen.get(callId) ?? [],
  };
  return world;
}

export interface RtpPacketHeard {
  payloadType: number;
  marker: boolean;
  sequence: number;
  timestamp: number;
  ssrc: number;
  payload: Buffer;
  /** When it came, by this process's clock. */
  atMs: number;
}

export interface RtpSink {
  port: number;
  packets: RtpPacketHeard[];
  close(): Promise<void>;
}

/** A socket that a scenario names as the target of the sound, and that records it. */
export async function openRtpSink(host = "127.0.0.1"): Promise<RtpSink> {
  const socket = createSocket({ type: "udp4", recvBufferSize: 4 * 1024 * 1024 });
  socket.bind(0, host);
  await once(socket, "listening");
  const packets: RtpPacketHeard[] = [];
  socket.on("message", (bytes: Buffer) => {
    if (bytes.length < 12 || bytes[0]! >> 6 !== 2) return;
    packets.push({
      payloadType: bytes[1]! & 0x7f, marker: (bytes[1]! & 0x80) !== 0,
      sequence: bytes.readUInt16BE(2), timestamp: bytes.readUInt32BE(4),
      ssrc: bytes.readUInt32BE(8), payload: bytes.subarray(12), atMs: performance.now(),
    });
  });
  return {
    port: socket.address().port,
    packets,
    close: () => new Promise((resolve) => void socket.close(() => resolve())),
  };
}
