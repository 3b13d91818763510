// What tests of all hosted carriers need: assistants at numbers of such a carrier, calls from them,
// and what becomes of the calls.
import assert from "node:assert/strict";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { CallResult } from "#support/api.ts";
import { createReceived, type Received } from "#support/received.ts";
import { newAssistant, openBeside, startTestServer, type TestServer } from "#support/server.ts";
import type { PublicDoor } from "./twilio-front.ts";

export const CUSTOMER = "+14155550100";

export interface HostedDesks {
  /** Every status of every call, as `<call id> <status>`. */
  news: Received<{ kind: string }>;
  /** Notified of this server's calls. */
  watch(server: TestServer): void;
  buy(number: string, key?: string): Promise<number>;
  /** An active assistant at a number of its own. */
  desk(
    changes?: Record<string, unknown>, key?: string,
  ): Promise<{ id: number; number: string; numberId: number }>;
  /** Has the assistant call; resolves to the call's id. */
  make(assistantId: number, key?: string, number?: string): Promise<number>;
  /** The call as the contract shows it, once it has the status. */
  when(callId: number, status: string): Promise<CallResult["body"]>;
  statuses(callId: number): string[];
  newestCall(): Promise<CallResult["body"]>;
}

let numbers = 0;
/** A number that nobody has had. */
export const newNumber = (): string => `+141555502${String(numbers += 1).padStart(2, "0")}`;

/** Enters a number that the operator has brought along. */
async function stock(
  { dataDir }: TestServer, carrier: HostedAccount, phoneNumber: string,
): Promise<void> {
  const storage = await openBeside(dataDir);
  const known = { countryCode: "US", smsCapable: false, monthlyMicros: 0 };
  await storage.numberInventory.stock({ now: 1, numbers: [{ phoneNumber, carrier, ...known }] });
  await storage.close();
}

/** `current`: the server that runs now. `offer`: puts a number up for sale. */
export function createHostedDesks(
  carrier: HostedAccount,
  current: () => TestServer,
  offer = (number: string): Promise<void> => stock(current(), carrier, number),
): HostedDesks {
  const news = createReceived<{ kind: string }>();
  const seen = new Map<number, string[]>();
  const ask = async (
    method: string, path: string, expected: number, key?: string, body?: object,
  ) => {
    const answer = await current().call(method, path, { key: key ?? current().key, body });
    assert.equal(answer.status, expected, JSON.stringify(answer.body));
    return answer.body as CallResult["body"];
  };
  const desks: HostedDesks = {
    news,
    watch: (server) => {
      const told = new Set<number>();
      server.app.features.bus.subscribe(`account:${server.accountId}`, (notice) => {
        // The bus may deliver an event twice.
        if (notice.kind !== "committed" || told.has(notice.event.id)) return;
        told.add(notice.event.id);
        const event = JSON.parse(notice.event.json) as
          { type: string; call_id: number; status?: string };
        if (event.type !== "call_status_changed" || event.status === undefined) return;
        seen.set(event.call_id, [...desks.statuses(event.call_id), event.status]);
        news.receive({ kind: `${event.call_id} ${event.status}` });
      });
    },
    buy: async (number, key) => {
      await offer(number);
      const body = { phone_number: number };
      return (await ask("POST", "/user/phone-numbers/purchase", 201, key, body)).data.id as number;
    },
    desk: async (changes = {}, key) => {
      const number = newNumber();
      const numberId = await desks.buy(number, key);
      const { id } = await newAssistant(current(), {
        status: "active", phone_number_id: numberId, post_call_evaluation: false,
        initial_message: "Hi there.", endpoint_sensitivity: 1, end_call_on_voicemail: false,
        ...changes,
      }, key);
      return { id, number, numberId };
    },
    make: async (assistantId, key, number = CUSTOMER) => {
      const body = { assistant_id: assistantId, phone_number: number };
      return (await ask("POST", "/user/make_call", 200, key, body)).call_id as number;
    },
    when: async (callId, status) => {
      await news.event<string>(`${callId} ${status}`);
      return ask("GET", `/user/calls/${callId}`, 200);
    },
    statuses: (callId) => seen.get(callId) ?? [],
    newestCall: async () => {
      const { data } = await ask("GET", "/user/calls?per_page=1", 200) as { data: { id: number }[] };
      return ask("GET", `/user/calls/${data[0]!.id}`, 200);
    },
  };
  return desks;
}

/** A server that the carrier reaches through the door, with money and desks. */
export async function startHostedServer(
  carrier: HostedAccount, door: PublicDoor, env: Record<string, string>,
  offer?: (number: string) => Promise<void>,
): Promise<HostedDesks & { server: TestServer; voiceUrl: string }> {
  const server = await startTestServer({
    env: { PARLEY_SPEECH: "loopback", PARLEY_PUBLIC_URL: door.url, ...env },
  });
  door.lead(server.port);
  await server.app.features.accounts.credit(server.accountId, 500_000_000);
  const desks = createHostedDesks(carrier, () => server, offer);
  desks.watch(server);
  return { ...desks, server, voiceUrl: `${door.url}/carriers/${carrier}/voice` };
}
