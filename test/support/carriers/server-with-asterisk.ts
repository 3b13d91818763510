// A server whose operator has an Asterisk, with numbers of its own: calls go over ARI and their
// media over chan_websocket. The telephones are Asterisk's own dialplan, behind Local channels, and
// any others registered there. The server's media socket is reached through a port that stays while
// servers behind it come and go.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { askUntil } from "#support/asking.ts";
import { openFrontDoor } from "#support/pages/front-door.ts";
import { startAsterisk, type Asterisk, type AsteriskOptions } from "#support/sip/asterisk.ts";
import { createHostedDesks, CUSTOMER, type HostedDesks } from "./hosted-calls.ts";
import { startTestServer, testDataDir, type TestServer } from "#support/server.ts";

export { CUSTOMER };
/** The name of ARI's user, of its application and of the client for media. */
export const PARLEY = "parley";
export const PASSWORD = "open: sesame & co";

export interface AsteriskWorld extends HostedDesks {
  asterisk: Asterisk;
  /** The server that runs now. */
  server: TestServer;
  env: Record<string, string>;
  /** Has the assistant call the number; resolves to the call's id. */
  dial(assistantId: number, number?: string): Promise<number>;
  /** Starts one in place of the last, which the caller has closed before. */
  startServer(): Promise<void>;
  /** The media socket is behind this port from now on, until a server starts. */
  lead(port: number): void;
  /** Resolves once Asterisk has a client to report calls to. */
  connected(): Promise<void>;
  /** As `startServer`; resolves once it has cleared up what was left at Asterisk. */
  cleared(): Promise<void>;
  /** Resolves once Asterisk has neither channels nor bridges. */
  isEmpty(): Promise<void>;
  close(): Promise<void>;
}

export async function startAsteriskWorld(
  options: Omit<AsteriskOptions, "ari">, env: Record<string, string> = {},
): Promise<AsteriskWorld> {
  const world = {} as AsteriskWorld;
  let port = 0;
  const door = await openFrontDoor(() => port);
  const mediaUrl = `${door.url.replace("http", "ws")}/carriers/asterisk/media`;
  const asterisk = await startAsterisk({
    ...options, ari: { user: PARLEY, password: PASSWORD, mediaUrl },
  });
  const dataDir = testDataDir();
  const desks = createHostedDesks("asterisk", () => world.server);
  const startServer = async (): Promise<void> => {
    world.server = await startTestServer({ dataDir, env: world.env });
    await world.server.app.features.accounts.credit(world.server.accountId, 500_000_000);
    port = world.server.port;
    desks.watch(world.server);
    await connected();
  };
  const connected = async (): Promise<void> => {
    // Asterisk has the application only while a client is connected.
    await askUntil(() => asterisk.command("ari show apps"), (apps) => apps.includes(PARLEY));
  };
  world.env = {
    PARLEY_SPEECH: "loopback", PARLEY_ASTERISK_URL: asterisk.ariUrl!,
    PARLEY_ASTERISK_USER: PARLEY, PARLEY_ASTERISK_PASSWORD: PASSWORD,
    PARLEY_ASTERISK_ENDPOINT: "Local/{number}@far", ...env,
  };
  await startServer();
  return Object.assign(world, {
    ...desks, asterisk, startServer, connected,
    lead: (next: number) => (port = next),
    cleared: async () => {
      // An orphaned bridge is cleared up last.
      const bridge = `${asterisk.ariUrl}/ari/bridges/${PARLEY}-room-${randomUUID()}`;
      const headers = {
        authorization: `Basic ${Buffer.from(`${PARLEY}:${PASSWORD}`).toString("base64")}`,
      };
      assert.equal((await fetch(bridge, { method: "POST", headers })).status, 200);
      await startServer();
      await askUntil(() => fetch(bridge, { headers }), ({ status }) => status !== 200);
    },
    desk: (changes: Record<string, unknown> = {}) =>
      desks.desk({ initial_message: "Hello", ...changes }),
    dial: (assistantId: number, number?: string) => desks.make(assistantId, undefined, number),
    isEmpty: async () => {
      for (;;) {
        const channels = await asterisk.command("core show channels concise");
        const bridges = await asterisk.command("bridge show all");
        const rest = `${channels}\n${bridges}`.split("\n").filter((one) =>
          one !== "" && !one.startsWith("Bridge-ID"));
        if (rest.length === 0) return;
      }
    },
    close: async () => {
      await world.server.close();
      await asterisk.close();
      await door.close();
    },
  });
}
