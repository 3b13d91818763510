// A server whose operator has an account at Twilio: Vercel's emulator answers its REST requests and
// signs what it reports, calls have their sound from twilio-phone.ts.
import assert from "node:assert/strict";
import twilio from "twilio";
import { newAssistant, startTestServer, type CallResult, type TestServer } from "./server.ts";
import { createTold, type Told } from "./told.ts";
import {
  EMULATED_SID, EMULATED_TOKEN, startTwilioEmulator, type TwilioEmulator,
} from "./twilio-emulator.ts";
import { openPublicDoor, startTwilioFront, type PublicDoor, type TwilioFront } from "./twilio-front.ts";
import { TwilioPhone, type PhoneOptions } from "./twilio-phone.ts";

export { EMULATED_SID, EMULATED_TOKEN };

export interface Placed {
  callId: number;
  /** What the server asked Twilio for. */
  form: URLSearchParams;
  sid: string;
  /** What Twilio was told to do with the call, and where to report it. */
  document: string;
  statusUrl: string;
}

export interface TwilioWorld {
  server: TestServer;
  front: TwilioFront;
  door: PublicDoor;
  emulator: TwilioEmulator;
  /** Every status of every call, as `<call id> <status>`. */
  news: Told<{ kind: string }>;
  buy(number: string, key?: string): Promise<number>;
  /** An active assistant at a number of its own. */
  desk(
    changes?: Record<string, unknown>, key?: string,
  ): Promise<{ id: number; number: string; numberId: number }>;
  /** Not waited for: `make_call` alone. Resolves to the call's id. */
  make(assistantId: number, key?: string): Promise<number>;
  /** Of `make`, when the emulator has answered. */
  dial(assistantId: number): Promise<Placed>;
  /** Somebody rings the number, through the emulator: its id there, and what we answered. */
  ring(number: string, from?: string): Promise<{ sid: string; document: string }>;
  /** Has the emulator report, signed. */
  report(sid: string, status: string): Promise<unknown>;
  /** The call as the contract shows it, once it has the status. */
  when(callId: number, status: string): Promise<CallResult["body"]>;
  statuses(callId: number): string[];
  newestCall(): Promise<CallResult["body"]>;
  phone(options: Partial<PhoneOptions> & Pick<PhoneOptions, "document" | "callSid">): Promise<TwilioPhone>;
  /** A webhook, signed rightly unless told. */
  post(url: string, form: Record<string, string>, signature?: string | null): Promise<
    { status: number; text: string }>;
  close(): Promise<void>;
}

export const ENV = {
  PARLEY_TWILIO_ACCOUNT_SID: EMULATED_SID, PARLEY_TWILIO_AUTH_TOKEN: EMULATED_TOKEN,
  PARLEY_SPEECH: "loopback",
};

export const CUSTOMER = "+14155550100";

let numbers = 0;
export const newNumber = (): string => `+141555502${String(numbers += 1).padStart(2, "0")}`;

export async function postSigned(
  url: string, form: Record<string, string>, signature?: string | null,
): Promise<{ status: number; text: string }> {
  const shown = signature === undefined
    ? twilio.getExpectedTwilioSignature(EMULATED_TOKEN, url, form)
    : signature;
  const response = await fetch(url, {
    method: "POST",
    headers: shown === null ? {} : { "X-Twilio-Signature": shown },
    body: new URLSearchParams(form),
  });
  return { status: response.status, text: await response.text() };
}

export function phoneAt(
  options: Partial<PhoneOptions> & Pick<PhoneOptions, "document" | "callSid">,
): Promise<TwilioPhone> {
  return TwilioPhone.talk({ authToken: EMULATED_TOKEN, accountSid: EMULATED_SID, ...options });
}

function watch(server: TestServer) {
  const news = createTold<{ kind: string }>();
  const seen = new Map<number, string[]>();
  server.app.features.bus.subscribe(`account:${server.accountId}`, (notice) => {
    if (notice.kind !== "committed") return;
    const event = JSON.parse(notice.event.json) as
      { type: string; call_id: number; status?: string };
    if (event.type !== "call_status_changed" || event.status === undefined) return;
    seen.set(event.call_id, [...seen.get(event.call_id) ?? [], event.status]);
    news.tell({ kind: `${event.call_id} ${event.status}` });
  });
  return { news, statuses: (callId: number) => seen.get(callId) ?? [] };
}

export async function startTwilioWorld(env: Record<string, string> = {}): Promise<TwilioWorld> {
  const door = await openPublicDoor();
  const emulator = await startTwilioEmulator(`${door.url}/unused`);
  const front = await startTwilioFront(emulator.url);
  const server = await startTestServer({
    env: { ...ENV, PARLEY_PUBLIC_URL: door.url, PARLEY_TWILIO_URL: front.url, ...env },
  });
  door.lead(server.port);
  await server.app.features.accounts.credit(server.accountId, 500_000_000);
  const { news, statuses } = watch(server);
  const call = async (callId: number) =>
    (await server.call("GET", `/user/calls/${callId}`)).body as CallResult["body"];
  const world: TwilioWorld = {
    server, front, door, emulator, news, statuses,
    buy: async (number, key = server.key) => {
      front.numbers.push(number);
      const { status, body } = await server.call("POST", "/user/phone-numbers/purchase", {
        key, body: { phone_number: number },
      });
      assert.equal(status, 201, JSON.stringify(body));
      return (body as { data: { id: number } }).data.id;
    },
    desk: async (changes = {}, key = server.key) => {
      const number = newNumber();
      const numberId = await world.buy(number, key);
      const { id } = await newAssistant(server, {
        status: "active", phone_number_id: numberId, post_call_evaluation: false,
        initial_message: "Hi there.", endpoint_sensitivity: 1, end_call_on_voicemail: false,
        ...changes,
      }, key);
      return { id, number, numberId };
    },
    make: async (assistantId, key = server.key) => {
      const { status, body } = await server.call("POST", "/user/make_call", {
        key, body: { assistant_id: assistantId, phone_number: CUSTOMER },
      });
      assert.equal(status, 200, JSON.stringify(body));
      return (body as { call_id: number }).call_id;
    },
    dial: async (assistantId) => {
      const earlier = front.told.kinds().filter((kind) => kind === "dialled").length;
      const callId = await world.make(assistantId);
      const { form, sid } = await front.told.event<string>("dialled", earlier);
      return {
        callId, form, sid,
        document: form.get("Twiml") ?? "", statusUrl: form.get("StatusCallback") ?? "",
      };
    },
    ring: async (number, from = CUSTOMER) => {
      const { sid } = await emulator.simulate("inbound-call", { To: number, From: from });
      return { sid, document: door.documents.at(-1) ?? "" };
    },
    report: (sid, status) => emulator.simulate("call-status", { CallSid: sid, Status: status }),
    when: async (callId, status) => {
      await news.event<string>(`${callId} ${status}`);
      return call(callId);
    },
    newestCall: async () => {
      const { body } = await server.call("GET", "/user/calls?per_page=1");
      return call((body as { data: { id: number }[] }).data[0]!.id);
    },
    phone: phoneAt,
    post: postSigned,
    close: async () => {
      await server.close();
      await front.close();
      await emulator.close();
      await door.close();
    },
  };
  return world;
}
