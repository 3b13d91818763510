// A server whose operator has an account at Vonage, with numbers brought along: vonage-server.ts
// answers its requests, and vonage-phone.ts is the media of its calls.
import { CUSTOMER, startHostedServer, type HostedDesks } from "./hosted-calls.ts";
import type { TestServer } from "#support/server.ts";
import { openPublicDoor, type PublicDoor } from "./twilio-front.ts";
import { startVonageServer, VONAGE_KEY, type Ncco, type VonageOrder, type VonageServer } from "./vonage-server.ts";
import { VONAGE_APPLICATION, VONAGE_SECRET } from "./vonage-signing.ts";

export { CUSTOMER };

export interface VonageWorld extends HostedDesks {
  server: TestServer;
  vonage: VonageServer;
  door: PublicDoor;
  /** What the operator enters at Vonage. */
  voiceUrl: string;
  /** Makes a call; resolves when Vonage has answered. */
  dial(assistantId: number): Promise<{ callId: number; uuid: string; order: VonageOrder }>;
  /** Somebody rings the number: what we answered. */
  ring(number: string, from?: string): Promise<{ uuid: string; status: number; ncco: Ncco }>;
  close(): Promise<void>;
}

export async function startVonageWorld(env: Record<string, string> = {}): Promise<VonageWorld> {
  const door = await openPublicDoor();
  const vonage = await startVonageServer();
  const desks = await startHostedServer("vonage", door, {
    PARLEY_VONAGE_URL: vonage.url, PARLEY_VONAGE_APPLICATION_ID: VONAGE_APPLICATION,
    PARLEY_VONAGE_PRIVATE_KEY: VONAGE_KEY, PARLEY_VONAGE_SIGNATURE_SECRET: VONAGE_SECRET, ...env,
  });
  const { server, voiceUrl } = desks;
  return {
    ...desks, vonage, door,
    dial: async (assistantId) => {
      const earlier = vonage.count("dialled");
      const callId = await desks.make(assistantId);
      const { uuid, body: order } = await vonage.received.event<string>("dialled", earlier);
      return { callId, uuid, order };
    },
    ring: (number, from = CUSTOMER) => vonage.ring(voiceUrl, number.slice(1), from.slice(1)),
    close: async () => {
      await server.close();
      await vonage.close();
      await door.close();
    },
  };
}
