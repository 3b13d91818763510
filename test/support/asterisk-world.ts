// A server whose operator has an Asterisk, with numbers of its own: calls go over ARI and their
// sound over chan_websocket. The telephones are Asterisk's own dialplan, behind Local channels, and
// whatever else is registered there. The server's media socket is reached through a port that stays
// while servers behind it come and go.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { openStorage } from "../../src/storage/sqlite/storage.ts";
import { startAsterisk, type Asterisk, type AsteriskOptions } from "./asterisk.ts";
import { openFrontDoor } from "./front-door.ts";
import {
  newAssistant, startTestServer, testDataDir, type CallResult, type TestServer,
} from "./server.ts";
import { createTold, type Told } from "./told.ts";

export const CUSTOMER = "+14155550100";
/** Of ARI, its application and the client for media. */
export const PARLEY = "parley";
export const PASSWORD = "open: sesame & co";

export interface AsteriskWorld {
  asterisk: Asterisk;
  /** The one that runs now. */
  server: TestServer;
  /** `<id> <status>`, and `arrived <id>` of calls that came in. */
  news: Told<{ kind: string }>;
  env: Record<string, string>;
  /** An active assistant at a number of its own. */
  desk(changes?: Record<string, unknown>): Promise<{ id: number; number: string }>;
  /** Has the assistant call the number; resolves to the call's id. */
  dial(assistantId: number, number?: string): Promise<number>;
  /** The call as the contract shows it, once it has the status. */
  when(callId: number, status: string): Promise<CallResult["body"]>;
  statuses(callId: number): string[];
  newestCallId(): Promise<number>;
  /** In the place of the one that was; ended before by whoever asks for it. */
  startServer(): Promise<void>;
  /** The media socket is behind this port from now on, until a server starts. */
  lead(port: number): void;
  /** Asterisk has somebody to tell of calls. */
  connected(): Promise<void>;
  /** As `startServer`, and until it has cleared away what was left at Asterisk. */
  cleared(): Promise<void>;
  /** Resolves once Asterisk has neither channels nor bridges. */
  isEmpty(): Promise<void>;
  close(): Promise<void>;
}

let numbers = 0;

async function stock(server: TestServer): Promise<string> {
  const phoneNumber = `+141555505${String(numbers += 1).padStart(2, "0")}`;
  const storage = await openStorage(server.dataDir, "inline");
  await storage.numberInventory.stock({
    now: 1,
    numbers: [{
      phoneNumber, countryCode: "US", smsCapable: false, monthlyMicros: 0, carrier: "asterisk",
    }],
  });
  await storage.close();
  return phoneNumber;
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
  const news = createTold<{ kind: string }>();
  const seen = new Map<number, string[]>();
  const watch = (server: TestServer): void => {
    let newest = 0;
    server.app.features.bus.subscribe(`account:${server.accountId}`, (notice) => {
      // The bus may tell an event twice.
      if (notice.kind !== "committed" || notice.event.id <= newest) return;
      newest = notice.event.id;
      const event = JSON.parse(notice.event.json) as
        { type: string; call_id: number; status?: string };
      if (event.type !== "call_status_changed" || event.status === undefined) return;
      seen.set(event.call_id, [...seen.get(event.call_id) ?? [], event.status]);
      news.tell({ kind: `${event.call_id} ${event.status}` });
    });
  };
  const startServer = async (): Promise<void> => {
    world.server = await startTestServer({ dataDir, env: world.env });
    await world.server.app.features.accounts.credit(world.server.accountId, 500_000_000);
    port = world.server.port;
    watch(world.server);
    await connected();
  };
  const connected = async (): Promise<void> => {
    // Its application is there as long as somebody listens.
    while (!(await asterisk.command("ari show apps")).includes(PARLEY)) { /* asks again */ }
  };
  world.env = {
    PARLEY_SPEECH: "loopback", PARLEY_ASTERISK_URL: asterisk.ariUrl!,
    PARLEY_ASTERISK_USER: PARLEY, PARLEY_ASTERISK_PASSWORD: PASSWORD,
    PARLEY_ASTERISK_ENDPOINT: "Local/{number}@far", ...env,
  };
  await startServer();
  return Object.assign(world, {
    asterisk, news, startServer, connected,
    lead: (next: number) => (port = next),
    cleared: async () => {
      // A bridge nobody knows: what is cleared away last.
      const bridge = `${asterisk.ariUrl}/ari/bridges/${PARLEY}-room-${randomUUID()}`;
      const headers = {
        authorization: `Basic ${Buffer.from(`${PARLEY}:${PASSWORD}`).toString("base64")}`,
      };
      assert.equal((await fetch(bridge, { method: "POST", headers })).status, 200);
      await startServer();
      while ((await fetch(bridge, { headers })).status === 200) { /* asks again */ }
    },
    statuses: (callId: number) => seen.get(callId) ?? [],
    desk: async (changes: Record<string, unknown> = {}) => {
      const number = await stock(world.server);
      const { status, body } = await world.server.call("POST", "/user/phone-numbers/purchase", {
        body: { phone_number: number },
      });
      assert.equal(status, 201, JSON.stringify(body));
      const { id } = await newAssistant(world.server, {
        status: "active", phone_number_id: (body as { data: { id: number } }).data.id,
        post_call_evaluation: false, initial_message: "Hello", endpoint_sensitivity: 1,
        end_call_on_voicemail: false, ...changes,
      });
      return { id, number };
    },
    dial: async (assistantId: number, number = CUSTOMER) => {
      const { status, body } = await world.server.call("POST", "/user/make_call", {
        body: { assistant_id: assistantId, phone_number: number },
      });
      assert.equal(status, 200, JSON.stringify(body));
      return (body as { call_id: number }).call_id;
    },
    when: async (callId: number, status: string) => {
      await news.event<string>(`${callId} ${status}`);
      return (await world.server.call("GET", `/user/calls/${callId}`)).body as CallResult["body"];
    },
    newestCallId: async () => {
      const { body } = await world.server.call("GET", "/user/calls?per_page=1");
      return (body as { data: { id: number }[] }).data[0]!.id;
    },
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
      door.close();
    },
  });
}
