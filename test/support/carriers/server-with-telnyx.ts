// The real server with an account at Telnyx, for tests: telnyx-server.ts takes its commands and
// sends reports, and telnyx-phone.ts is the media of its calls.
import assert from "node:assert/strict";
import { CUSTOMER, startHostedServer, type HostedDesks } from "./hosted-calls.ts";
import type { TestServer } from "#support/server.ts";
import {
  startTelnyxServer, TELNYX_API_KEY, TELNYX_CONNECTION, TELNYX_PUBLIC_KEY, type TelnyxCall,
  type TelnyxServer,
} from "./telnyx-server.ts";
import { openPublicDoor, type PublicDoor } from "./twilio-front.ts";

export { CUSTOMER };

export interface TelnyxWorld extends HostedDesks {
  server: TestServer;
  telnyx: TelnyxServer;
  door: PublicDoor;
  /** What the operator enters at Telnyx. */
  voiceUrl: string;
  /** Makes a call; resolves when Telnyx has the order. */
  dial(assistantId: number): Promise<{ callId: number; call: TelnyxCall }>;
  /** Somebody rings the number, and it is answered. */
  ring(number: string): Promise<TelnyxCall>;
  close(): Promise<void>;
}

export async function startTelnyxWorld(env: Record<string, string> = {}): Promise<TelnyxWorld> {
  const door = await openPublicDoor();
  const telnyx = await startTelnyxServer();
  const desks = await startHostedServer("telnyx", door, {
    PARLEY_TELNYX_URL: telnyx.url, PARLEY_TELNYX_API_KEY: TELNYX_API_KEY,
    PARLEY_TELNYX_PUBLIC_KEY: TELNYX_PUBLIC_KEY, PARLEY_TELNYX_CONNECTION_ID: TELNYX_CONNECTION,
    ...env,
  });
  const { server, voiceUrl } = desks;
  const world: TelnyxWorld = {
    ...desks, telnyx, door,
    dial: async (assistantId) => {
      const earlier = telnyx.count("dialled");
      const callId = await world.make(assistantId);
      const { callId: id } = await telnyx.received.event<string>("dialled", earlier);
      return { callId, call: telnyx.calls.get(id)! };
    },
    ring: async (number) => {
      const { status, text, call } = await telnyx.ring(voiceUrl, number, CUSTOMER);
      assert.deepEqual([status, text], [200, ""]);
      await telnyx.command("answer", call.id);
      return call;
    },
    close: async () => {
      await server.close();
      await telnyx.close();
      await door.close();
    },
  };
  return world;
}
