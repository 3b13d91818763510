// A double of Asterisk's REST interface and its connection for events, as its swagger describes
// them and the real one was seen to behave: it keeps requests, and tests say what is published. It
// has the channels and bridges that were created and not yet deleted; a channel of externalMedia
// enters the application by itself. For tests without a telephone, and what no real Asterisk does.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";
import { createReceived, type Received } from "#support/received.ts";

export interface AriRequest {
  /** `POST /channels` and so on. */
  kind: string;
  body: Record<string, unknown>;
  query: URLSearchParams;
}

/** Null: as the real one; a number: this status; `lose`: it acts, and cuts the connection. */
export type Behaviour = (request: AriRequest) => number | "lose" | null;

export interface DoubleChannel {
  id: string;
  state: string;
  caller: { number: string };
  dialplan: { context: string; exten: string; app_name: string; app_data: string };
}

export interface AsteriskDouble {
  url: string;
  /** Requests in order, `connected` of each connection for events, and their path as `address`. */
  received: Received<AriRequest>;
  channels: Map<string, DoubleChannel>;
  bridges: Set<string>;
  behave(behaviour: Behaviour | null): void;
  /** Whether externalMedia enters the application; true at first. */
  hasMedia: boolean;
  tell(event: object | string): void;
  /** Puts a channel into the application, and publishes the event that says so. */
  enters(id: string, more?: Partial<DoubleChannel>): void;
  destroyed(id: string, cause: number): void;
  /** Cuts the connections for events. */
  cut(): void;
  requests(kind: string): AriRequest[];
  close(): Promise<void>;
}

export const DOUBLE_USER = "parley";
export const DOUBLE_PASSWORD = "sesame: open & shut";
const AUTHORIZATION =
  `Basic ${Buffer.from(`${DOUBLE_USER}:${DOUBLE_PASSWORD}`).toString("base64")}`;

const channelOf = (id: string, more: Partial<DoubleChannel> = {}): DoubleChannel => ({
  id, state: "Up", caller: { number: "" },
  dialplan: { context: "default", exten: "s", app_name: "Stasis", app_data: "parley" }, ...more,
});

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return text === "" ? {} : JSON.parse(text) as Record<string, unknown>;
}

export async function startAsteriskDouble(): Promise<AsteriskDouble> {
  const received = createReceived<AriRequest>();
  const channels = new Map<string, DoubleChannel>();
  const bridges = new Set<string>();
  /** Channels that may be added to a bridge. */
  const inside = new Set<string>();
  const listeners = new Set<WebSocket>();
  const open = new Set<Socket>();
  let behaviour: Behaviour | null = null;
  const double = { hasMedia: true } as AsteriskDouble;
  const tell = (event: object | string): void => {
    const text = typeof event === "string" ? event : JSON.stringify(event);
    for (const one of listeners) one.send(text);
  };
  const enters = (id: string, more: Partial<DoubleChannel> = {}): void => {
    const channel = channelOf(id, more);
    channels.set(id, channel);
    inside.add(id);
    tell({ type: "StasisStart", application: "parley", args: [], channel });
  };
  const destroyed = (id: string, cause: number): void => {
    const channel = channels.get(id) ?? channelOf(id);
    channels.delete(id);
    tell({ type: "ChannelDestroyed", cause, cause_txt: "", channel });
  };
  /** Does what the real one would; returns its status and body. */
  const act = (method: string, path: string, body: Record<string, unknown>): [number, unknown] => {
    const [, kind, id = "", what] = path.split("/").map(decodeURIComponent);
    const list = kind === "bridges" ? bridges : channels;
    if (path === "/channels" && method === "GET") return [200, [...channels.values()]];
    if (path === "/bridges" && method === "GET") return [200, [...bridges].map((one) => ({ id: one }))];
    if (path === "/channels") {
      channels.set(String(body.channelId), channelOf(String(body.channelId), { state: "Down" }));
      return [200, { id: body.channelId }];
    }
    if (path === "/channels/externalMedia") {
      const media = String(body.channelId);
      channels.set(media, channelOf(media));
      if (double.hasMedia) setImmediate(() => enters(media));
      return [200, { id: media }];
    }
    if (kind === "bridges" && what === undefined && method === "POST") {
      bridges.add(id);
      return [200, { id }];
    }
    if (!list.has(id)) return [404, { message: "not found" }];
    if (what === "addChannel" && !inside.has(String(body.channel))) return [422, { message: "no" }];
    if (method === "DELETE") {
      list.delete(id);
      if (kind === "channels") destroyed(id, 16);
      return [204, null];
    }
    if (what === "variable" && method === "GET") return [200, { value: "1" }];
    return [204, null];
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? "", "http://localhost");
    const body = await bodyOf(request);
    if (request.headers.authorization !== AUTHORIZATION) return void response.writeHead(401).end();
    const path = url.pathname.replace(/^\/ari/, "");
    const asked = { kind: `${request.method} ${path}`, body, query: url.searchParams };
    const how = behaviour?.(asked) ?? null;
    received.receive(asked);
    if (typeof how === "number") return void response.writeHead(how).end('{"message":"no"}');
    const [status, answered] = act(request.method ?? "", path, body);
    if (how === "lose") return void request.socket.destroy();
    response.writeHead(status, { "content-type": "application/json" });
    response.end(answered === null ? "" : JSON.stringify(answered));
  };
  const server = createServer((request, response) => void answer(request, response));
  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const { pathname, searchParams: query } = new URL(request.url ?? "", "http://localhost");
    const isAllowed = request.headers.authorization === AUTHORIZATION && pathname === "/ari/events";
    if (!isAllowed) return void socket.end("HTTP/1.1 401 Unauthorized\r\n\r\n");
    sockets.handleUpgrade(request, socket, head, (one) => {
      listeners.add(one);
      one.on("close", () => listeners.delete(one));
      received.receive({ kind: "connected", body: {}, query });
    });
  });
  server.on("connection", (socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return Object.assign(double, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received, channels, bridges, tell, enters, destroyed,
    behave: (next: Behaviour | null) => (behaviour = next),
    cut: () => listeners.forEach((one) => one.terminate()),
    requests: (kind: string) => received.events.filter((one) => one.kind === kind),
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  });
}
