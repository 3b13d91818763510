// Vonage's Voice API (v1) as its documentation describes it: accepts and refuses requests by their
// token and their form, keeps the calls, and sends signed webhooks. It checks tokens with Vonage's
// own SDK. Not checked against a live account.
import assert from "node:assert/strict";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { verifySignature } from "@vonage/jwt";
import { listenLocally } from "#support/local-server.ts";
import { createReceived, type Received } from "#support/received.ts";
import { VONAGE_APPLICATION, vonageBearer } from "./vonage-signing.ts";

const pair = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
export const VONAGE_KEY = pair.privateKey;
export const VONAGE_PUBLIC_KEY = pair.publicKey;

export interface NccoConnect {
  action: "connect";
  from?: string;
  timeout?: number;
  eventUrl: string[];
  eventMethod: string;
  endpoint: {
    type: string;
    uri?: string;
    number?: string;
    "content-type"?: string;
    headers?: Record<string, string>;
    authorization?: { type: string };
  }[];
}
export type Ncco = NccoConnect[];

export interface VonageOrder {
  to: { type: string; number: string }[];
  from: { type: string; number: string };
  ncco: Ncco;
  event_url: string[];
  event_method: string;
  ringing_timer: number;
  advanced_machine_detection?: { behavior: string; mode: string };
}

export interface VonageUpdate {
  action?: string;
  destination?: { type: string; ncco: Ncco };
  digits?: string;
}

export interface VonageRequest {
  /** `dial`, or `update <uuid>`, or `dtmf <uuid>`; `dialled` once a call is placed. */
  kind: string;
  uuid: string;
  body: VonageOrder & VonageUpdate;
}

export type Behaviour =
  | "pass"
  /** Vonage acts and its answer is lost. */
  | "lose"
  | { status: number; body: object };

export interface VonageServer {
  url: string;
  received: Received<VonageRequest>;
  count(kind: string): number;
  /** `how` is called before every request; null: all pass. */
  behave(how: ((request: VonageRequest) => Behaviour) | null): void;
  /** Reports of a call that was ordered, where the order said; resolves to the answer's status. */
  report(uuid: string, status: string, more?: object): Promise<number>;
  /** Reports what answered, in such reports' form: with `call_uuid`, without a direction. */
  detected(uuid: string, status: "human" | "machine"): Promise<number>;
  /** Somebody rings: asks the address what to do. */
  ring(answerUrl: string, to: string, from: string): Promise<{
    uuid: string; status: number; ncco: Ncco;
  }>;
  close(): Promise<void>;
}

interface Call {
  /** Where the telephone's leg is reported; null: inbound, at the application's address. */
  eventUrl: string | null;
  /** Without their plus. */
  from: string;
  to: string;
  conversation: string;
  isOver: boolean;
}

/** Sends a webhook, signed correctly by default. */
export async function postVonage(
  url: string, body: object, authorization?: string | null,
): Promise<{ status: number; text: string }> {
  const text = JSON.stringify(body);
  const shown = authorization === undefined ? vonageBearer(text) : authorization;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json", ...(shown === null ? {} : { authorization: shown }),
    },
    body: text,
  });
  return { status: response.status, text: await response.text() };
}

function isAuthorized(header: string): boolean {
  const token = /^Bearer (.+)$/.exec(header)?.[1] ?? "";
  if (!verifySignature(token, VONAGE_PUBLIC_KEY)) return false;
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as {
    application_id?: string; iat: number; exp: number;
  };
  return claims.application_id === VONAGE_APPLICATION && claims.exp - claims.iat <= 24 * 3600;
}

const PHONE = /^\d{7,15}$/;

function isNcco(ncco: Ncco): boolean {
  return ncco.length > 0 && ncco.every(({ action, eventUrl, endpoint: [endpoint] }) =>
    action === "connect" && Array.isArray(eventUrl) && endpoint !== undefined
    && (endpoint.type === "websocket"
      ? /^wss?:/.test(endpoint.uri ?? "") && endpoint["content-type"] === "audio/l16;rate=16000"
        && JSON.stringify(endpoint.headers).length <= 512
      : endpoint.type === "sip" || PHONE.test(endpoint.number ?? "")));
}

const isPhone = ({ type, number }: VonageOrder["from"]): boolean =>
  type === "phone" && PHONE.test(number);

const isOrder = ({ to, from, ncco, event_url: urls, ringing_timer: ringingS }: VonageOrder) =>
  to.length === 1 && to.every(isPhone) && isPhone(from) && isNcco(ncco) && urls.length === 1
  && Number.isInteger(ringingS) && ringingS >= 1 && ringingS <= 120;

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of incoming) text += String(chunk);
  return text;
}

const BAD_REQUEST: Behaviour = { status: 400, body: { title: "Bad Request" } };
const NOT_FOUND: Behaviour = { status: 404, body: { type: "NOT_FOUND", error_title: "Not Found" } };

export async function startVonageServer(): Promise<VonageServer> {
  const received = createReceived<VonageRequest>();
  const calls = new Map<string, Call>();
  let behave: Parameters<VonageServer["behave"]>[0] = null;
  const send = async (uuid: string, members: object): Promise<number> => {
    const { eventUrl, from, to, conversation } = calls.get(uuid) ?? assert.fail(uuid);
    assert.ok(eventUrl !== null);
    const { status } = await postVonage(eventUrl, {
      from, to, conversation_uuid: conversation, timestamp: new Date().toISOString(), ...members,
    });
    return status;
  };
  const begin = (call: Pick<Call, "eventUrl" | "from" | "to">): [string, string] => {
    const uuid = randomUUID();
    const conversation = `CON-${randomUUID()}`;
    calls.set(uuid, { ...call, conversation, isOver: false });
    return [uuid, conversation];
  };
  const dial = (body: VonageOrder): Behaviour => {
    if (!isOrder(body)) return BAD_REQUEST;
    const { to: [to], from, event_url: [eventUrl = ""] } = body;
    const [uuid, conversation] = begin({ eventUrl, from: from.number, to: to?.number ?? "" });
    received.receive({ kind: "dialled", uuid, body });
    return {
      status: 201,
      body: { uuid, status: "started", direction: "outbound", conversation_uuid: conversation },
    };
  };
  const change = (uuid: string, { action, destination, digits }: VonageUpdate): Behaviour => {
    const call = calls.get(uuid);
    if (!call || call.isOver) return NOT_FOUND;
    if (digits !== undefined) {
      const isKeys = /^[\d*#p]+$/.test(digits);
      return isKeys ? { status: 200, body: { message: "DTMF sent", uuid } } : BAD_REQUEST;
    }
    if (action === "transfer" && destination?.type === "ncco" && isNcco(destination.ncco)) {
      return { status: 204, body: {} };
    }
    if (action !== "hangup") return BAD_REQUEST;
    call.isOver = true;
    return { status: 204, body: {} };
  };
  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "", url = "", headers } = incoming;
    const body = JSON.parse(await bodyOf(incoming)) as VonageOrder & VonageUpdate;
    const reply = (status: number, answer: object): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(status === 204 ? undefined : JSON.stringify(answer));
    };
    if (!isAuthorized(headers.authorization ?? "")) {
      return reply(401, { type: "UNAUTHORIZED", error_title: "Unauthorized" });
    }
    const [, uuid = "", dtmf] = /^\/v1\/calls(?:\/([^/]+))?(\/dtmf)?$/.exec(url) ?? assert.fail(url);
    const kind = method === "POST" ? "dial" : `${dtmf ? "dtmf" : "update"} ${uuid}`;
    const request = { kind, uuid, body };
    received.receive(request);
    const how = behave?.(request) ?? "pass";
    if (typeof how === "object") return reply(how.status, how.body);
    const done = method === "POST" ? dial(body) : change(uuid, body);
    if (how === "lose" || typeof done === "string") response.destroy();
    else reply(done.status, done.body);
  };
  const server = createServer((incoming, response) => {
    handle(incoming, response).catch(() => response.destroy());
  });
  const { url, close } = await listenLocally(server);
  return {
    url,
    received,
    count: (kind) => received.events.filter((one) => one.kind === kind).length,
    behave: (next) => (behave = next),
    report: (uuid, status, more = {}) => send(uuid, { uuid, status, direction: "outbound", ...more }),
    detected: (uuid, status) => send(uuid, { call_uuid: uuid, status }),
    ring: async (answerUrl, to, from) => {
      const [uuid, conversation] = begin({ eventUrl: null, from, to });
      const { status, text } = await postVonage(answerUrl, {
        from, to, uuid, conversation_uuid: conversation, endpoint_type: "phone",
        region_url: "https://api-us-3.vonage.com",
      });
      return { uuid, status, ncco: text === "" ? [] : JSON.parse(text) as Ncco };
    },
    close,
  };
}
