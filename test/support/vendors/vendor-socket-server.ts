// A WebSocket server on loopback in place of a vendor's, which answers requests over HTTP too: it
// keeps what comes in, sends what a test tells it to and understands nothing. Tests and doubles of
// each vendor bring its messages; the vendor's own SDK connects to it there.
import { once } from "node:events";
import {
  createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";
import { createWaiting } from "#support/waiting.ts";

/** One connection. */
export interface VendorPeer {
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  audioBytes: number;
  /** The binary messages, and the size of each. */
  chunks: Buffer[];
  chunkBytes: number[];
  texts: string[];
  isClosed: boolean;
  /** Sends data as it is, an object as JSON. */
  send(data: string | Buffer | object): void;
  end(code: number, reason: string): void;
  /** Ends the connection without a closing frame. */
  cut(): void;
  /** Stops reading, and answering pings. */
  freeze(): void;
  /** Resolves once it holds; checked whenever something comes in. */
  until(holds: (peer: this) => boolean): Promise<void>;
}

/** A request that is no handshake. */
export interface VendorPost {
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  body: string;
  response: ServerResponse;
}

export interface VendorServer<Peer extends VendorPeer = VendorPeer> {
  /** `ws://…` */
  url: string;
  /** In order of arrival. */
  posts: VendorPost[];
  peers: Peer[];
  /** The connection of that number, from 0, once it is there. */
  peer(number: number): Promise<Peer>;
  /** Answers handshakes and requests with this status instead; null accepts them again. */
  refuse(status: number | null): void;
  close(): Promise<void>;
}

export interface VendorScript<Peer extends VendorPeer = VendorPeer> {
  /** Adds to a connection what the vendor's double has besides. */
  made?(bare: VendorPeer): Peer;
  /** The status with which a handshake is refused; null accepts it. */
  refuses?(path: string, headers: IncomingHttpHeaders): number | null;
  /** Further headers of a refusal: `name: value\r\n`. */
  refusalHeaders?: string;
  onOpen?(peer: Peer): void;
  onText?(peer: Peer, text: string): void;
  onAudio?(peer: Peer, bytes: Buffer): void;
  /** Has to end the response; `url`: the server's own. Absent: 404. */
  onPost?(post: VendorPost, url: string): void;
  /** For SDKs that accept only TLS. */
  tls?: { key: string; cert: string };
}

export async function startVendorServer<Peer extends VendorPeer = VendorPeer>(
  script: VendorScript<Peer> = {},
): Promise<VendorServer<Peer>> {
  const peers: Peer[] = [];
  const posts: VendorPost[] = [];
  let status: number | null = null;
  const { until, look } = createWaiting();
  const server = script.tls ? createTlsServer(script.tls) : createServer();
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 4 * 1024 * 1024 });
  server.on("request", (request, response) => void receive(request).then((post) => {
    posts.push({ ...post, response });
    if (status !== null) return response.writeHead(status).end();
    if (script.onPost) return script.onPost({ ...post, response }, url());
    return response.writeHead(404).end();
  }));
  server.on("upgrade", (request, socket, head) => {
    const { headers } = request;
    const { pathname: path, searchParams: query } = new URL(`http://vendor${request.url ?? "/"}`);
    const refusal = status ?? script.refuses?.(path, headers) ?? null;
    if (refusal !== null) {
      socket.end(`HTTP/1.1 ${refusal} Refused\r\ncontent-length: 0\r\nconnection: close\r\n`
        + `${script.refusalHeaders ?? ""}\r\n`);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (connection) => {
      const bare: VendorPeer = {
        path, query, headers, audioBytes: 0, chunks: [], chunkBytes: [], texts: [], isClosed: false,
        send: (data) => connection.send(
          typeof data === "string" || Buffer.isBuffer(data) ? data : JSON.stringify(data)),
        end: (code, reason) => connection.close(code, reason),
        cut: () => connection.terminate(),
        freeze: () => connection.pause(),
        until: (holds) => until(() => holds(bare)),
      };
      const peer = script.made?.(bare) ?? (bare as Peer);
      peers.push(peer);
      listen(connection, peer, script, look);
      script.onOpen?.(peer);
      look();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = (): string =>
    `${script.tls ? "wss" : "ws"}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: url(),
    posts,
    peers,
    peer: async (number) => {
      await until(() => peers.length > number);
      return peers[number]!;
    },
    refuse: (next) => (status = next),
    close: async () => {
      for (const connection of sockets.clients) connection.terminate();
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function receive(request: IncomingMessage): Promise<Omit<VendorPost, "response">> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { pathname: path, searchParams: query } = new URL(`http://vendor${request.url ?? "/"}`);
  return { path, query, headers: request.headers, body: Buffer.concat(chunks).toString() };
}

function listen<Peer extends VendorPeer>(
  connection: WebSocket, peer: Peer, script: VendorScript<Peer>, look: () => void,
): void {
  connection.on("message", (data: Buffer, isBinary) => {
    if (isBinary) {
      peer.audioBytes += data.length;
      peer.chunks.push(data);
      peer.chunkBytes.push(data.length);
      script.onAudio?.(peer, data);
    } else {
      peer.texts.push(data.toString());
      script.onText?.(peer, data.toString());
    }
    look();
  });
  connection.on("close", () => {
    peer.isClosed = true;
    look();
  });
  // Reported by "close" as well.
  connection.on("error", look);
}
