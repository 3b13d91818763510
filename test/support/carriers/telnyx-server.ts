// Telnyx as its documentation describes it: takes commands for calls over REST, checks their
// credentials and fields, and reports by signed webhooks, each of which is delivered twice. The
// media of its calls are in telnyx-phone.ts. Not checked against a live account.
import { generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "#support/local-server.ts";
import { createReceived, type Received } from "#support/received.ts";

export const TELNYX_API_KEY = "KEY0123_test";
export const TELNYX_CONNECTION = "1494404757140276705";

const pair = generateKeyPairSync("ed25519");
export const TELNYX_PUBLIC_KEY =
  pair.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64");

export type Fields = Record<string, unknown>;

export interface TelnyxCommand {
  /** `dial`, `answer`, `hangup`, ..., also followed by the id; `dialled` once the call is there. */
  kind: string;
  callId: string;
  body: Fields;
}

/** One leg. */
export interface TelnyxCall {
  id: string;
  direction: "incoming" | "outgoing";
  from: string;
  to: string;
  /** The fields of the dial or the answer that say where its sound goes. */
  stream: Fields;
  clientState: string | null;
  webhookUrl: string;
  isAnswered: boolean;
  isOver: boolean;
}

export type Behaviour =
  | "pass"
  /** Telnyx acts and its answer is lost. */
  | "lose"
  | { status: number; body: object };

export interface Delivery {
  status: number;
  text: string;
}

export interface TelnyxServer {
  url: string;
  received: Received<TelnyxCommand>;
  calls: Map<string, TelnyxCall>;
  /** What the first such command for the call said. */
  command(action: string, callId: string): Promise<Fields>;
  count(kind: string, callId?: string): number;
  behave(how: ((command: TelnyxCommand) => Behaviour) | null): void;
  /** Somebody rings; resolves to the answer to the webhook. */
  ring(voiceUrl: string, to: string, from: string): Promise<Delivery & { call: TelnyxCall }>;
  /** Sends a signed report to the call's webhook, twice. */
  report(call: TelnyxCall, event: string, payload?: Fields): Promise<void>;
  /** The call ends, other than by a command. */
  end(call: TelnyxCall, hangup: Fields): Promise<void>;
  close(): Promise<void>;
}

const ERRORS: Record<string, [number, string]> = {
  10009: [401, "Authentication failed"], 10015: [422, "Bad Request"],
  90015: [422, "Invalid Call Control ID"], 90018: [422, "Call has already ended"],
};

class Refusal extends Error {
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** Sends a webhook; `key` and `nowMs` are for those that are not Telnyx's. */
export async function postSigned(
  url: string, body: string, { key = pair.privateKey, nowMs = Date.now() } = {},
): Promise<Delivery> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "telnyx-timestamp": timestamp,
      "telnyx-signature-ed25519": sign(null, Buffer.from(`${timestamp}|${body}`), key).toString("base64"),
    },
    body,
  });
  return { status: response.status, text: await response.text() };
}

export function webhookOf(call: TelnyxCall, event: string, payload: Fields = {}): string {
  return JSON.stringify({
    data: {
      record_type: "event", event_type: event, id: randomUUID(), occurred_at: new Date().toISOString(),
      payload: {
        call_control_id: call.id, call_leg_id: randomUUID(), call_session_id: randomUUID(),
        connection_id: TELNYX_CONNECTION, client_state: call.clientState,
        from: call.from, to: call.to, ...payload,
      },
    },
    meta: { attempt: 1, delivered_to: call.webhookUrl },
  });
}

const text = (body: Fields, name: string): string => {
  const value = body[name];
  if (typeof value !== "string" || value === "") throw new Refusal("10015");
  return value;
};

const oneOf = (body: Fields, name: string, values: unknown[]): void => {
  if (!values.includes(body[name])) throw new Refusal("10015");
};

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

function checkStream(body: Fields): void {
  if (!/^wss?:\/\//.test(text(body, "stream_url"))) throw new Refusal("10015");
  oneOf(body, "stream_track", ["inbound_track", "outbound_track", "both_tracks"]);
  oneOf(body, "stream_codec", ["PCMU"]);
  oneOf(body, "stream_bidirectional_mode", ["rtp"]);
  oneOf(body, "stream_bidirectional_codec", ["PCMU"]);
  oneOf(body, "stream_bidirectional_target_legs", ["self"]);
  if (!BASE64.test(text(body, "client_state"))) throw new Refusal("10015");
}

function checkTimeout({ timeout_secs: seconds }: Fields): void {
  const isRight = Number.isInteger(seconds) && Number(seconds) >= 5 && Number(seconds) <= 600;
  if (!isRight) throw new Refusal("10015");
}

function reportedTo(body: Fields): string {
  oneOf(body, "webhook_url_method", ["POST"]);
  return text(body, "webhook_url");
}

/** The calls there are, and what commands do to them. */
function createExchange() {
  const calls = new Map<string, TelnyxCall>();
  const pending = new Set<Promise<unknown>>();
  const add = (
    made: Pick<TelnyxCall, "direction" | "from" | "to" | "webhookUrl"> & Partial<TelnyxCall>,
  ): TelnyxCall => {
    const call: TelnyxCall = {
      stream: {}, clientState: null, isAnswered: false, isOver: false, ...made,
      id: `v3:${randomUUID()}_-A`,
    };
    calls.set(call.id, call);
    return call;
  };
  const report = async (call: TelnyxCall, event: string, payload: Fields = {}): Promise<void> => {
    const body = webhookOf(call, event, payload);
    const url = call.webhookUrl;
    for (let attempt = 1; attempt <= 2; attempt += 1) await postSigned(url, body);
  };
  const later = (work: Promise<unknown>): void => {
    // The receiver of the report may be gone already.
    const kept = work.catch(() => undefined).finally(() => pending.delete(kept));
    pending.add(kept);
  };
  const end = async (call: TelnyxCall, hangup: Fields): Promise<void> => {
    call.isOver = true;
    await report(call, "call.hangup", { state: "hangup", sip_hangup_cause: "unspecified", ...hangup });
  };
  const live = (id: string): TelnyxCall => {
    const call = calls.get(id);
    if (!call) throw new Refusal("90015");
    if (call.isOver) throw new Refusal("90018");
    return call;
  };
  const dial = (body: Fields): TelnyxCall => {
    if (text(body, "connection_id") !== TELNYX_CONNECTION) throw new Refusal("10015");
    checkStream(body);
    checkTimeout(body);
    const call = add({
      direction: "outgoing", from: text(body, "from"), to: text(body, "to"), stream: body,
      clientState: text(body, "client_state"), webhookUrl: reportedTo(body),
    });
    later(report(call, "call.initiated", { direction: call.direction, state: "bridging" }));
    return call;
  };
  const actions: Record<string, (call: TelnyxCall, body: Fields) => void> = {
    answer: (call, body) => {
      if (call.direction !== "incoming") throw new Refusal("10015");
      checkStream(body);
      const clientState = text(body, "client_state");
      const webhookUrl = reportedTo(body);
      Object.assign(call, { isAnswered: true, stream: body, clientState, webhookUrl });
      later(report(call, "call.answered", { state: "answered" }));
    },
    reject: (call, body) => {
      oneOf(body, "cause", ["CALL_REJECTED", "USER_BUSY"]);
      later(end(call, { hangup_cause: text(body, "cause").toLowerCase(), hangup_source: "callee" }));
    },
    hangup: (call) => {
      const isCaller = call.direction === "outgoing";
      later(end(call, {
        hangup_cause: isCaller && !call.isAnswered ? "originator_cancel" : "normal_clearing",
        hangup_source: isCaller ? "caller" : "callee",
      }));
    },
    transfer: (call, body) => {
      checkTimeout(body);
      const other = add({
        direction: "outgoing", to: text(body, "to"), webhookUrl: reportedTo(body),
        from: typeof body.from === "string" ? body.from : call.to,
      });
      later(report(other, "call.initiated", { direction: "outgoing", state: "bridging" }));
    },
    send_dtmf: (_, body) => {
      if (!/^[0-9A-DwW*#]+$/.test(text(body, "digits"))) throw new Refusal("10015");
    },
  };
  return { calls, pending, add, report, end, live, dial, actions };
}

export async function startTelnyxServer(): Promise<TelnyxServer> {
  const received = createReceived<TelnyxCommand>();
  const exchange = createExchange();
  let behave: Parameters<TelnyxServer["behave"]>[0] = null;
  const act = (action: string, id: string, body: Fields): object => {
    if (action === "dial") {
      const call = exchange.dial(body);
      received.receive({ kind: "dialled", callId: call.id, body });
      return { call_control_id: call.id, is_alive: false, record_type: "call" };
    }
    const run = exchange.actions[action];
    if (!run) throw new Refusal("10015");
    run(exchange.live(id), body);
    return { result: "ok" };
  };
  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "", url = "", headers } = incoming;
    let json = "";
    for await (const chunk of incoming) json += String(chunk);
    const reply = (status: number, body: object): void => void response
      .writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const refuse = (code: string): void => {
      const [status, title] = ERRORS[code] ?? [500, "Unexpected error"];
      reply(status, { errors: [{ code, title }] });
    };
    if (headers.authorization !== `Bearer ${TELNYX_API_KEY}`) return refuse("10009");
    const [, id = "", action = "dial"] =
      /^\/v2\/calls(?:\/([^/]+)\/actions\/(\w+))?$/.exec(url) ?? [null, "", "none"];
    if (method !== "POST" || headers["content-type"] !== "application/json") return refuse("10015");
    const body = JSON.parse(json) as Fields;
    const command = { kind: action, callId: decodeURIComponent(id), body };
    received.receive(command);
    if (id !== "") received.receive({ ...command, kind: `${action} ${command.callId}` });
    const how = behave?.(command) ?? "pass";
    if (typeof how === "object") return reply(how.status, how.body);
    try {
      const data = act(action, command.callId, command.body);
      if (how === "lose") response.destroy();
      else reply(200, { data });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuse(error.code);
    }
  };
  const server = createServer((incoming, response) => {
    handle(incoming, response).catch(() => response.destroy());
  });
  const { url, close } = await listenLocally(server);
  return {
    url,
    received,
    calls: exchange.calls,
    command: async (action, callId) => (await received.event<string>(`${action} ${callId}`)).body,
    count: (kind, callId) => received.events.filter((one) =>
      one.kind === kind && (callId === undefined || one.callId === callId)).length,
    behave: (next) => (behave = next),
    ring: async (voiceUrl, to, from) => {
      const call = exchange.add({ direction: "incoming", from, to, webhookUrl: voiceUrl });
      const body = webhookOf(call, "call.initiated", { direction: "incoming", state: "parked" });
      const [first] = await Promise.all([postSigned(voiceUrl, body), postSigned(voiceUrl, body)]);
      return { ...first, call };
    },
    report: exchange.report,
    end: exchange.end,
    close: async () => {
      await Promise.all(exchange.pending);
      await close();
    },
  };
}
