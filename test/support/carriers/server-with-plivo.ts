// The real server with an account at Plivo, for tests: plivo-server.ts answers its REST requests
// and sends reports, and plivo-phone.ts is the media of its calls.
import { CUSTOMER, startHostedServer, type HostedDesks } from "./hosted-calls.ts";
import type { TestServer } from "#support/server.ts";
import { openPublicDoor, type PublicDoor } from "./twilio-front.ts";
import {
  PLIVO_ID, PLIVO_TOKEN, startPlivoServer, type PlivoCall, type PlivoServer,
} from "./plivo-server.ts";

export { CUSTOMER };

export interface PlivoWorld extends HostedDesks {
  server: TestServer;
  plivo: PlivoServer;
  door: PublicDoor;
  /** Where the operator has calls to the numbers answered. */
  voiceUrl: string;
  /** Makes a call; resolves when Plivo has the order. */
  dial(assistantId: number): Promise<{ callId: number; plivoId: string; call: PlivoCall }>;
  close(): Promise<void>;
}

export async function startPlivoWorld(env: Record<string, string> = {}): Promise<PlivoWorld> {
  const door = await openPublicDoor();
  const plivo = await startPlivoServer();
  const desks = await startHostedServer("plivo", door, {
    PARLEY_PLIVO_AUTH_ID: PLIVO_ID, PARLEY_PLIVO_AUTH_TOKEN: PLIVO_TOKEN,
    PARLEY_PLIVO_URL: plivo.url, ...env,
  });
  const { server } = desks;
  const world: PlivoWorld = {
    ...desks, plivo, door,
    dial: async (assistantId) => {
      const earlier = plivo.received.kinds().filter((kind) => kind === "dial").length;
      const callId = await world.make(assistantId);
      const { callId: plivoId } = await plivo.received.event<string>("dial", earlier);
      return { callId, plivoId, call: plivo.call(plivoId) };
    },
    close: async () => {
      await server.close();
      await plivo.close();
      await door.close();
    },
  };
  return world;
}
