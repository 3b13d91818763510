// A server whose operator has an account at Twilio: Vercel's emulator answers its REST requests and
// signs its reports, and twilio-phone.ts is the media of the calls.
import twilio from "twilio";
import { CUSTOMER, newNumber, startHostedServer, type HostedDesks } from "./hosted-calls.ts";
import type { TestServer } from "#support/server.ts";
import {
  EMULATED_SID, EMULATED_TOKEN, startTwilioEmulator, type TwilioEmulator,
} from "./twilio-emulator.ts";
import { openPublicDoor, startTwilioFront, type PublicDoor, type TwilioFront } from "./twilio-front.ts";
import { TwilioPhone, type PhoneOptions } from "./twilio-phone.ts";

export { CUSTOMER, EMULATED_SID, EMULATED_TOKEN, newNumber };

export interface Placed {
  callId: number;
  /** What the server asked Twilio for. */
  form: URLSearchParams;
  sid: string;
  /** What Twilio is told to do with the call, and where to report it. */
  document: string;
  statusUrl: string;
}

export interface TwilioWorld extends HostedDesks {
  server: TestServer;
  voiceUrl: string;
  front: TwilioFront;
  door: PublicDoor;
  emulator: TwilioEmulator;
  /** Makes a call; resolves when the emulator has answered. */
  dial(assistantId: number): Promise<Placed>;
  /** Somebody rings the number, through the emulator: its id there, and what we answered. */
  ring(number: string, from?: string): Promise<{ sid: string; document: string }>;
  /** Has the emulator report, signed. */
  report(sid: string, status: string): Promise<unknown>;
  phone(options: Partial<PhoneOptions> & Pick<PhoneOptions, "document" | "callSid">): Promise<TwilioPhone>;
  /** Sends a webhook, signed correctly by default. */
  post(url: string, form: Record<string, string>, signature?: string | null): Promise<
    { status: number; text: string }>;
  close(): Promise<void>;
}

export const ENV = {
  PARLEY_TWILIO_ACCOUNT_SID: EMULATED_SID, PARLEY_TWILIO_AUTH_TOKEN: EMULATED_TOKEN,
  PARLEY_SPEECH: "loopback",
};

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

export async function startTwilioWorld(env: Record<string, string> = {}): Promise<TwilioWorld> {
  const door = await openPublicDoor();
  const emulator = await startTwilioEmulator(`${door.url}/unused`);
  const front = await startTwilioFront(emulator.url);
  const desks = await startHostedServer("twilio", door, {
    ...ENV, PARLEY_TWILIO_URL: front.url, ...env,
  }, (number) => Promise.resolve(void front.numbers.push(number)));
  const { server } = desks;
  const world: TwilioWorld = {
    ...desks, front, door, emulator,
    dial: async (assistantId) => {
      const earlier = front.received.kinds().filter((kind) => kind === "dialled").length;
      const callId = await world.make(assistantId);
      const { form, sid } = await front.received.event<string>("dialled", earlier);
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
