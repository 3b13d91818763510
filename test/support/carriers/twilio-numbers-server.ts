// Twilio's numbers for tests: a real server that speaks the parts of the REST API of 2010-04-01
// that sell numbers, as documented. It can be made to hold an answer back, before or after it
// acted.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "#support/local-server.ts";

export const TWILIO_SID = `AC${"0".repeat(32)}`;
export const TWILIO_TOKEN = "a token of the double";

export interface IncomingNumber {
  sid: string;
  phone_number: string;
  friendly_name: string;
}

type Answer = { status: number; body?: unknown };

export interface TwilioRequest {
  method: string;
  /** Below the account. */
  path: string;
  query: URLSearchParams;
  form: URLSearchParams;
}

/** `act` does what was requested and returns Twilio's answer. Null: the connection drops. */
export type Interception = (
  request: TwilioRequest, act: () => Answer,
) => Answer | null | undefined | Promise<Answer | null>;

export interface TwilioServer {
  url: string;
  /** For the server under test. */
  env: Record<string, string>;
  /** For sale, E.164 to country. */
  available: Map<string, string>;
  /** Sold. */
  incoming: IncomingNumber[];
  requests: TwilioRequest[];
  /** Receives every request; undefined: it is answered as usual. Absent: removes the last. */
  intercept(interception?: Interception): void;
  close(): Promise<void>;
}

const refusal = (status: number, code: number, message: string): Answer =>
  ({ status, body: { code, message, more_info: "", status } });

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return new URLSearchParams(text);
}

/** The state behind the resource, as far as buying numbers needs it. */
function createAccount() {
  const available = new Map<string, string>();
  const incoming: IncomingNumber[] = [];
  let made = 0;
  const search = (country: string, query: URLSearchParams): Answer => {
    const contains = query.get("Contains") ?? "";
    if (contains.length === 1) return refusal(400, 21421, "Invalid pattern");
    const found = [...available].filter(([number, of]) =>
      of === country && number.includes(contains));
    const rows = found.slice(0, Number(query.get("PageSize") ?? 50)).map(([number]) => ({
      friendly_name: number, phone_number: number, lata: null, rate_center: null, region: "NJ",
      iso_country: country, address_requirements: "none", beta: false,
      capabilities: { voice: true, SMS: true, MMS: false },
    }));
    return { status: 200, body: { uri: "", available_phone_numbers: rows } };
  };
  const buy = (form: URLSearchParams): Answer => {
    const number = form.get("PhoneNumber") ?? "";
    if (!available.delete(number)) return refusal(400, 21422, `${number} is not available`);
    made += 1;
    const row = {
      sid: `PN${String(made).padStart(32, "0")}`, phone_number: number,
      friendly_name: form.get("FriendlyName") ?? number,
    };
    incoming.push(row);
    return { status: 201, body: { ...row, status: "in-use" } };
  };
  const list = (query: URLSearchParams): Answer => {
    const name = query.get("FriendlyName");
    const rows = incoming.filter((row) => name === null || row.friendly_name === name);
    return { status: 200, body: { page: 0, incoming_phone_numbers: rows } };
  };
  const remove = (sid: string): Answer => {
    const at = incoming.findIndex((row) => row.sid === sid);
    if (at < 0) return refusal(404, 20404, "The requested resource was not found");
    const [row] = incoming.splice(at, 1);
    if (row) available.set(row.phone_number, "US");
    return { status: 204 };
  };
  const act = ({ method, path, query, form }: TwilioRequest): Answer => {
    const country = /^\/AvailablePhoneNumbers\/([A-Z]{2})\/Local\.json$/.exec(path)?.[1];
    const sid = /^\/IncomingPhoneNumbers\/(PN\w+)\.json$/.exec(path)?.[1];
    if (method === "GET" && country) return search(country, query);
    if (method === "DELETE" && sid) return remove(sid);
    if (path === "/IncomingPhoneNumbers.json") {
      if (method === "POST") return buy(form);
      if (method === "GET") return list(query);
    }
    return refusal(404, 20404, "The requested resource was not found");
  };
  return { available, incoming, act };
}

export async function startTwilioNumbers(): Promise<TwilioServer> {
  const account = createAccount();
  const requests: TwilioRequest[] = [];
  let intercept: Interception = () => undefined;
  const root = `/2010-04-01/Accounts/${TWILIO_SID}`;
  const authorization = `Basic ${Buffer.from(`${TWILIO_SID}:${TWILIO_TOKEN}`).toString("base64")}`;
  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(incoming.url ?? "", "http://double");
    const request = {
      method: incoming.method ?? "",
      path: url.pathname.replace(root, ""),
      query: url.searchParams,
      form: await readForm(incoming),
    };
    requests.push(request);
    const isKnown = incoming.headers.authorization === authorization
      && url.pathname.startsWith(root);
    const act = () => (isKnown ? account.act(request) : refusal(401, 20003, "Authenticate"));
    const intercepted = await intercept(request, act);
    const answer = intercepted === undefined ? act() : intercepted;
    if (answer === null) {
      response.destroy();
      return;
    }
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(answer.body === undefined ? "" : JSON.stringify(answer.body));
  };
  const server = createServer((incoming, response) => void handle(incoming, response));
  const { url, close } = await listenLocally(server);
  return {
    url,
    env: {
      PARLEY_TWILIO_URL: url,
      PARLEY_TWILIO_ACCOUNT_SID: TWILIO_SID,
      PARLEY_TWILIO_AUTH_TOKEN: TWILIO_TOKEN,
    },
    available: account.available,
    incoming: account.incoming,
    requests,
    intercept: (interception) => (intercept = interception ?? (() => undefined)),
    close,
  };
}
