// Vercel's emulator of Twilio in this process. It neither says which port it got nor binds only to
// loopback, so where it listens is decided here.
import { once } from "node:events";
import { Server, type AddressInfo } from "node:net";
import { createEmulator } from "emulate";

export const EMULATED_SID = `AC${"5".repeat(32)}`;
export const EMULATED_TOKEN = "a token of the emulator";
export const EMULATED_NUMBER = "+15005550006";

export interface TwilioEmulator {
  url: string;
  /** Has the emulator simulate that a call comes in or changes; resolves to the call. */
  simulate(what: "inbound-call" | "call-status", form: Record<string, string>): Promise<{ sid: string }>;
  close(): Promise<void>;
}

export async function startTwilioEmulator(voiceUrl: string): Promise<TwilioEmulator> {
  const { listen } = Server.prototype;
  let server: Server | null = null;
  Server.prototype.listen = function listenHere(this: Server) {
    server = Reflect.apply(listen, this, [0, "127.0.0.1"]) as Server;
    return server;
  } as typeof listen;
  const emulator = await createEmulator({
    service: "twilio",
    seed: { twilio: {
      account: { sid: EMULATED_SID, auth_token: EMULATED_TOKEN },
      phone_numbers: [{ phone_number: EMULATED_NUMBER, voice_url: voiceUrl }],
    } },
  }).finally(() => (Server.prototype.listen = listen));
  const heard = server as unknown as Server;
  if (!heard.listening) await once(heard, "listening");
  const url = `http://127.0.0.1:${(heard.address() as AddressInfo).port}`;
  const authorization = Buffer.from(`${EMULATED_SID}:${EMULATED_TOKEN}`).toString("base64");
  return {
    url,
    simulate: async (what, form) => {
      const answer = await fetch(`${url}/_twilio/simulate/${what}`, {
        method: "POST",
        headers: { authorization: `Basic ${authorization}` },
        body: new URLSearchParams(form),
      });
      return await answer.json() as { sid: string };
    },
    close: () => emulator.close(),
  };
}
