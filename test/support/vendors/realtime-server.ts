// A server that speaks OpenAI's Realtime protocol over a pipeline of its own: it hears the end of
// speech by silence, asks a function for the words and sound of the reply, and sends them. Over ws:
// and, given a certificate, over wss:. The `openai` package connects to it in the tests.
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { promisify } from "node:util";
import { WebSocketServer } from "ws";
import { RealtimePeer, type RealtimeScript } from "./realtime-peer.ts";
import { createWaiting } from "#support/waiting.ts";

export interface RealtimeServerOptions extends Partial<RealtimeScript> {
  reply: RealtimeScript["reply"];
  /** With it, the server serves wss: too. */
  tls?: Certificate;
}

export interface RealtimeServer {
  /** `http://…/v1`, and `https://…/v1` or null. */
  url: string;
  secureUrl: string | null;
  /** In order of arrival. */
  peers: RealtimePeer[];
  /** The connection of that number, from 0, once it is there. */
  peer(number: number): Promise<RealtimePeer>;
  /** Answers handshakes with this status instead; null accepts them again. */
  refuse(status: number | null): void;
  close(): Promise<void>;
}

export async function startRealtimeServer(options: RealtimeServerOptions): Promise<RealtimeServer> {
  const script: RealtimeScript = {
    hear: (pcm) => `heard ${Math.round(pcm.length / 24)} ms`,
    names: "released",
    frameMs: 100,
    paceMs: 0,
    ...options,
  };
  const peers: RealtimePeer[] = [];
  const waiting = createWaiting();
  let status: number | null = null;
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 16 * 1024 * 1024 });
  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (status !== null) {
      socket.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (connection) => {
      peers.push(new RealtimePeer(connection, request, script));
      waiting.look();
    });
  };
  const servers = [createServer(), ...(options.tls ? [createTlsServer(options.tls)] : [])];
  for (const server of servers) {
    server.on("upgrade", upgrade);
    server.on("request", (_, response) => response.writeHead(404).end());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
  const [plain, secure] = servers.map((server) => (server.address() as AddressInfo).port);
  return {
    url: `http://127.0.0.1:${plain}/v1`,
    secureUrl: secure === undefined ? null : `https://127.0.0.1:${secure}/v1`,
    peers,
    peer: async (number) => {
      await waiting.until(() => peers.length > number);
      return peers[number]!;
    },
    refuse: (next) => (status = next),
    close: async () => {
      for (const connection of sockets.clients) connection.terminate();
      await Promise.all(servers.map(closeServer));
    },
  };
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

export interface Certificate {
  key: string;
  cert: string;
}

/** For 127.0.0.1, made now, trusted by nobody. */
export async function selfSignedCertificate(): Promise<Certificate> {
  const folder = await mkdtemp(join(tmpdir(), "certificate-"));
  const [keyFile, certFile] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  try {
    await promisify(execFile)("openssl", [
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
      "-keyout", keyFile, "-out", certFile, "-days", "2", "-subj", "/CN=127.0.0.1",
      "-addext", "subjectAltName=IP:127.0.0.1",
    ]);
    return { key: await readFile(keyFile, "utf8"), cert: await readFile(certFile, "utf8") };
  } finally {
    await rm(folder, { recursive: true });
  }
}
