// A proxy between the server under test and Vercel's emulator of Twilio: forwards REST requests and
// keeps them, sells the numbers that the emulator only keeps, and can lose or refuse an answer.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "#support/local-server.ts";
import { openFrontDoor } from "#support/pages/front-door.ts";
import { createReceived, type Received } from "#support/received.ts";

export interface RestRequest {
  /** `dial`, `update`, or another request; `dialled` once the emulator has answered. */
  kind: string;
  path: string;
  /** The id of the call, for `dialled` and `update`. */
  sid: string;
  form: URLSearchParams;
}

export type Behaviour =
  | "pass"
  /** The emulator acts and its answer is lost. */
  | "lose"
  | { status: number; body: object };

export interface TwilioFront {
  url: string;
  /** For sale. */
  numbers: string[];
  received: Received<RestRequest>;
  /** The first request that hangs the call up, or changes it otherwise. */
  update(sid: string, number?: number): Promise<URLSearchParams>;
  /** How many requests of this kind there were, of one call or of all. */
  count(kind: string, sid?: string): number;
  /** `how` is called before every request is forwarded; null: all pass. */
  behave(how: ((request: RestRequest) => Behaviour | Promise<Behaviour>) | null): void;
  close(): Promise<void>;
}

const kindOf = (method: string, path: string): string => {
  if (method === "POST" && path.endsWith("/Calls.json")) return "dial";
  return method === "POST" && path.includes("/Calls/") ? "update" : `${method} ${path}`;
};

/** `prefix` is removed from every path: SignalWire's paths begin with one. */
export async function startTwilioFront(emulatorUrl: string, prefix = ""): Promise<TwilioFront> {
  const received = createReceived<RestRequest>();
  const numbers: string[] = [];
  let behave: Parameters<TwilioFront["behave"]>[0] = null;
  const sell = (path: string): object | null => !path.includes("/AvailablePhoneNumbers/") ? null : {
    available_phone_numbers: numbers.map((number) => ({
      phone_number: number, iso_country: "US", address_requirements: "none",
      capabilities: { voice: true, SMS: true, MMS: false },
    })),
  };
  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "", url = "", headers } = incoming;
    let body = "";
    for await (const chunk of incoming) body += String(chunk);
    const path = url.replace(prefix, "").split("?")[0] ?? "";
    const sid = /\/Calls\/(\w+)\.json$/.exec(path)?.[1] ?? "";
    const request = { kind: kindOf(method, path), path, sid, form: new URLSearchParams(body) };
    const reply = (status: number, text: string): void =>
      void response.writeHead(status, { "content-type": "application/json" }).end(text);
    const offered = sell(path);
    if (offered) return reply(200, JSON.stringify(offered));
    received.receive(request);
    if (sid !== "") received.receive({ ...request, kind: `update ${sid}` });
    const how = await behave?.(request) ?? "pass";
    if (typeof how === "object") return reply(how.status, JSON.stringify(how.body));
    const answer = await fetch(emulatorUrl + url.replace(prefix, ""), {
      method,
      headers: {
        authorization: headers.authorization ?? "",
        "content-type": headers["content-type"] ?? "",
      },
      ...(method === "POST" ? { body } : {}),
    });
    const text = await answer.text();
    if (request.kind === "dial" && answer.ok) {
      received.receive({ ...request, kind: "dialled", sid: (JSON.parse(text) as { sid: string }).sid });
    }
    if (how === "lose") response.destroy();
    else reply(answer.status, text);
  };
  const server = createServer((incoming, response) => {
    handle(incoming, response).catch(() => response.destroy());
  });
  const { url, close } = await listenLocally(server);
  return {
    url: `${url}${prefix}`,
    numbers,
    received,
    update: async (sid, number = 0) => (await received.event<string>(`update ${sid}`, number)).form,
    count: (kind, sid) => received.events.filter((one) =>
      one.kind === kind && (sid === undefined || one.sid === sid)).length,
    behave: (next) => (behave = next),
    close,
  };
}

export interface PublicDoor {
  url: string;
  port: number;
  /** Where the server is, once it is. */
  lead(port: number): void;
  /** TwiML that went out through it. */
  documents: string[];
  close(): Promise<void>;
}

/** The address the world knows the server by, before there is a server. */
export async function openPublicDoor(): Promise<PublicDoor> {
  let portBehind = 0;
  const documents: string[] = [];
  const door = await openFrontDoor(() => portBehind, (chunk) => {
    const document = /<\?xml.*<\/Response>/s.exec(chunk.toString("utf8"))?.[0];
    if (document !== undefined) documents.push(document);
  });
  return { ...door, documents, lead: (next) => (portBehind = next) };
}
