// Plivo for tests: a real server that speaks the parts of the Voice API with which calls are placed
// and changed, as documented, and sends signed reports to the addresses it was given. The test says
// what happens at the far end. Not checked against a live account.
import { createHmac, randomInt, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "#support/local-server.ts";
import { createReceived, type Received } from "#support/received.ts";

export const PLIVO_ID = "MAXXXXXXXXXXXXXXXXXX";
export const PLIVO_TOKEN = "a token of the double";

type Fields = Record<string, string>;

const queryOf = (text: string): string => [...new URLSearchParams(text)]
  .map((pair) => pair.join("=")).sort().join("&");

/** `X-Plivo-Signature-V3`, as Plivo's documentation puts it together. */
export function plivoSignature(
  method: "GET" | "POST", url: string, nonce: string, fields: Fields = {},
): string {
  const [address = "", query = ""] = url.split(/\?(.*)/s);
  const form = Object.keys(fields).sort().map((name) => name + fields[name]).join("");
  const queried = query === "" ? "" : queryOf(query);
  const tail = method === "POST" && form !== "" ? `${queried === "" ? "" : "."}${form}` : "";
  const mark = queried + tail === "" ? "" : "?";
  return createHmac("sha256", PLIVO_TOKEN)
    .update(`${address}${mark}${queried}${tail}.${nonce}`).digest("base64");
}

export function plivoHeaders(method: "GET" | "POST", url: string, fields: Fields = {}): Fields {
  const nonce = String(randomInt(1e12));
  return {
    "X-Plivo-Signature-V3": plivoSignature(method, url, nonce, fields),
    "X-Plivo-Signature-V3-Nonce": nonce,
  };
}

export interface PlivoReply {
  status: number;
  contentType: string;
  text: string;
}

/** Sends a webhook; `signature` replaces the right one; null: none. */
export async function postAsPlivo(
  url: string, fields: Fields, signature?: string | null,
): Promise<PlivoReply> {
  const signed = plivoHeaders("POST", url, fields);
  const response = await fetch(url, {
    method: "POST",
    headers: {
      ...(signature === null ? {} : signed),
      ...(signature ? { "X-Plivo-Signature-V3": signature } : {}),
    },
    body: new URLSearchParams(fields),
  });
  const contentType = response.headers.get("content-type") ?? "";
  return { status: response.status, contentType, text: await response.text() };
}

export interface PlivoCall {
  id: string;
  direction: "inbound" | "outbound";
  /** Digits, as Plivo writes them. */
  from: string;
  to: string;
  /** An order is `queued` until it rings. */
  state: "queued" | "ringing" | "live" | "over";
  /** What was ordered; empty for a call that came in. */
  order: Record<string, unknown>;
  /** The address of the document a transfer sends the call to. */
  alegUrl: string | null;
}

export interface PlivoRequest {
  /** `dial`, `transfer`, `hangup`, `cancel`; each also comes as `<kind> <id of the call>`. */
  kind: string;
  method: string;
  /** Below the account. */
  path: string;
  body: Record<string, unknown>;
  callId: string;
}

export type PlivoBehaviour =
  | "pass"
  /** Plivo acts, and its answer is lost. */
  | "lose"
  | { status: number; body: object };

export interface PlivoServer {
  url: string;
  received: Received<PlivoRequest>;
  call(id: string): PlivoCall;
  /** Reports that it rings. */
  ring(id: string): Promise<PlivoReply>;
  /** The call is picked up; resolves to what Plivo is then told to do. */
  pickUp(id: string): Promise<PlivoReply>;
  detect(id: string, isMachine: boolean): Promise<PlivoReply>;
  /** The call ends, whoever ended it. `fields`: how. */
  end(id: string, fields?: Fields): Promise<void>;
  /** Somebody rings a number whose application answers at `voiceUrl`. */
  arrive(
    voiceUrl: string, call: { from: string; to: string },
  ): Promise<PlivoReply & { id: string }>;
  /** Fetches the document of a transfer; resolves to what Plivo is told to do. */
  follow(id: string): Promise<PlivoReply>;
  /** `how` is called before a request is acted on; null: all pass. */
  behave(how: ((request: PlivoRequest) => PlivoBehaviour) | null): void;
  close(): Promise<void>;
}

const NORMAL = {
  CallStatus: "completed", HangupCause: "NORMAL_CLEARING", HangupCauseCode: "4000",
  HangupCauseName: "Normal Hangup", HangupSource: "Callee",
};
const BY_API = {
  HangupCause: "ORIGINATOR_CANCEL", HangupCauseCode: "1000", HangupCauseName: "Cancelled",
  HangupSource: "API Request",
};

/** As a live account sent them: the ids of a call to one telephone are the same. */
function fieldsOf({ id, direction, from, to }: PlivoCall, more: Fields): Fields {
  const outbound = { RequestUUID: id, ALegRequestUUID: id, ALegUUID: id };
  return {
    CallUUID: id, Direction: direction, From: from, To: to, BillRate: "0.005",
    ParentAuthID: PLIVO_ID, SessionStart: "2026-09-16 08:33:39.219903",
    ...(direction === "outbound" ? outbound : {}),
    ...more,
  };
}

const isUrl = (value: unknown): value is string => typeof value === "string" && /^https?:/.test(value);
const isNumber = (value: unknown): value is string => typeof value === "string" && /^\d+$/.test(value);

type Answer = { status: number; body: object | null };

const refused = (status: number, error: string): Answer =>
  ({ status, body: { api_id: randomUUID(), error } });

/** What the Voice API does to calls. */
function createExchange() {
  const calls = new Map<string, PlivoCall>();
  const report = (url: unknown, fields: Fields): Promise<PlivoReply> => {
    if (!isUrl(url)) throw new Error("there is nowhere to report that to");
    return postAsPlivo(url, fields);
  };
  const finish = async (call: PlivoCall, fields: Fields): Promise<void> => {
    call.state = "over";
    const { hangup_url: url } = call.order;
    if (call.direction === "outbound") await report(url, fieldsOf(call, { Event: "Hangup", ...fields }));
  };
  const dial = (order: Record<string, unknown>): Answer => {
    const { from, to, answer_url: url, answer_method: method } = order;
    if (!isNumber(from) || !isNumber(to)) return refused(400, "from or to parameter is invalid");
    if (!isUrl(url) || method !== "POST") return refused(400, "answer_url parameter is invalid");
    const id = randomUUID();
    calls.set(id, { id, direction: "outbound", from, to, state: "queued", order, alegUrl: null });
    return { status: 201, body: { api_id: randomUUID(), message: "call fired", request_uuid: id } };
  };
  const stop = (call: PlivoCall): Answer => {
    const status = call.state === "live" ? "completed" : "cancel";
    // The answer does not wait for the webhook's receiver.
    void finish(call, { ...BY_API, CallStatus: status }).catch(() => undefined);
    return { status: 204, body: null };
  };
  const act = ({ kind, body, callId }: PlivoRequest): Answer => {
    if (kind === "dial") return dial(body);
    const call = calls.get(callId);
    const isCall = call?.state === "ringing" || call?.state === "live";
    if (!call || (kind === "cancel" ? call.state !== "queued" : !isCall)) return refused(404, "not found");
    if (kind !== "transfer") return stop(call);
    const { legs, aleg_url: url, aleg_method: method } = body;
    if (legs !== "aleg" || !isUrl(url) || method !== "POST") return refused(400, "invalid parameter");
    call.alegUrl = url;
    return { status: 202, body: { api_id: randomUUID(), message: "call transferred" } };
  };
  return { calls, report, finish, act };
}

const KINDS: [string, RegExp, string][] = [
  ["POST", /^\/Call\/()$/, "dial"], ["POST", /^\/Call\/([^/]+)\/$/, "transfer"],
  ["DELETE", /^\/Call\/([^/]+)\/$/, "hangup"], ["DELETE", /^\/Request\/([^/]+)\/$/, "cancel"],
];

async function readRequest(incoming: IncomingMessage): Promise<PlivoRequest | null> {
  const { method = "", url = "", headers } = incoming;
  let text = "";
  for await (const chunk of incoming) text += String(chunk);
  const authorization = `Basic ${Buffer.from(`${PLIVO_ID}:${PLIVO_TOKEN}`).toString("base64")}`;
  const root = `/v1/Account/${PLIVO_ID}`;
  if (headers.authorization !== authorization || !url.startsWith(root)) return null;
  const path = url.slice(root.length);
  const [kind = `${method} ${path}`, callId = ""] = KINDS.flatMap(([of, pattern, name]) => {
    const id = of === method ? pattern.exec(path)?.[1] : undefined;
    return id === undefined ? [] : [name, id];
  });
  const isJson = headers["content-type"] === "application/json";
  const body = isJson ? JSON.parse(text) as Record<string, unknown> : {};
  return { kind, method, path, body, callId };
}

export async function startPlivoServer(): Promise<PlivoServer> {
  const exchange = createExchange();
  const received = createReceived<PlivoRequest>();
  let behave: Parameters<PlivoServer["behave"]>[0] = null;
  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const reply = ({ status, body }: Answer): void =>
      void response.writeHead(status, { "content-type": "application/json" })
        .end(body === null ? "" : JSON.stringify(body));
    const request = await readRequest(incoming);
    if (!request) return reply(refused(401, "Authentication failed"));
    const how = behave?.(request) ?? "pass";
    const answer = typeof how === "object" ? how : exchange.act(request);
    const made = answer.body as { request_uuid?: string } | null;
    const callId = request.kind === "dial" ? made?.request_uuid ?? "" : request.callId;
    received.receive({ ...request, callId });
    if (callId !== "") received.receive({ ...request, callId, kind: `${request.kind} ${callId}` });
    if (how === "lose") response.destroy();
    else reply(answer);
  };
  const server = createServer((incoming, response) => {
    handle(incoming, response).catch(() => response.destroy());
  });
  const { url, close } = await listenLocally(server);
  const call = (id: string): PlivoCall => {
    const found = exchange.calls.get(id);
    if (!found) throw new Error("there is no such call");
    return found;
  };
  const go = (id: string, state: PlivoCall["state"], url: string, fields: Fields) => {
    const one = call(id);
    one.state = state;
    return exchange.report(one.order[url], fieldsOf(one, fields));
  };
  return {
    url,
    received,
    call,
    ring: (id) => go(id, "ringing", "ring_url", { Event: "Ring", CallStatus: "ringing" }),
    pickUp: (id) => go(id, "live", "answer_url", { Event: "StartApp", CallStatus: "in-progress" }),
    detect: (id, isMachine) => go(id, "live", "machine_detection_url", {
      Event: "MachineDetection", CallStatus: "in-progress", Machine: String(isMachine), IfMachine: "continue",
    }),
    end: (id, fields = NORMAL) => exchange.finish(call(id), fields),
    arrive: async (voiceUrl, { from, to }) => {
      const id = randomUUID();
      const one: PlivoCall = {
        id, direction: "inbound", from, to, state: "ringing", order: {}, alegUrl: null,
      };
      exchange.calls.set(id, one);
      const fields = fieldsOf(one, { Event: "StartApp", CallStatus: "ringing" });
      const reply = await exchange.report(voiceUrl, fields);
      one.state = reply.text.includes("<Hangup") ? "over" : "live";
      return { ...reply, id };
    },
    follow: (id) => exchange.report(call(id).alegUrl,
      fieldsOf(call(id), { Event: "Transfer", CallStatus: "in-progress" })),
    behave: (next) => (behave = next),
    close,
  };
}
