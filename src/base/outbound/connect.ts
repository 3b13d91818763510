// How connections over HTTP are made, directly or through the proxy of the environment: a tunnel
// (CONNECT), so that TLS is spoken with the place itself. Used for every dispatcher.
import type { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { bareHost } from "#core/networks.ts";
import { credentialsOf, namedProxies, proxyFor } from "#config/proxy.ts";
import { buildConnector } from "./undici.ts";

type Connector = buildConnector.connector;
type Options = Parameters<Connector>[0];

interface ConnectOptions {
  timeout?: number;
  allowH2?: boolean;
}

const CONNECT_MS = 10_000;

/** The proxy could not be reached, or has no way there: nothing of a request was sent. */
class ProxyFailure extends Error {
  readonly code = "EPROXY";
}

/** `place`: the name or address, with a port, that the proxy is to connect to. */
function openTunnel(
  proxy: URL, place: string, timeoutMs: number,
  callback: (error: Error | null, socket: Duplex | null) => void,
): void {
  const { request } = proxy.protocol === "https:"
    ? process.getBuiltinModule("node:https")
    : process.getBuiltinModule("node:http");
  const user = credentialsOf(proxy);
  const asked = request({
    host: bareHost(proxy.hostname),
    port: proxy.port || (proxy.protocol === "https:" ? 443 : 80),
    method: "CONNECT", path: place, agent: false, timeout: timeoutMs,
    headers: {
      host: place,
      ...user !== null && { "proxy-authorization": `Basic ${Buffer.from(user).toString("base64")}` },
    },
  });
  const fail = (why: string, cause?: unknown): void =>
    callback(new ProxyFailure(`the proxy ${proxy.host} ${why}`, { cause }), null);
  asked.once("connect", ({ statusCode = 0 }, socket) => {
    if (statusCode === 200) return callback(null, socket.setTimeout(0));
    socket.destroy();
    fail(`answered ${statusCode}`);
  });
  asked.once("timeout", () => asked.destroy(new Error(`no answer in ${timeoutMs} ms`)));
  asked.once("error", (error) => fail(`could not be asked: ${error.message}`, error));
  asked.end();
}

/** Whether connections to the place go through a proxy. */
export const isProxied = (place: Options): boolean => proxyFor(place) !== null;

/** `at`: what the proxy is to connect to in place of the name. */
export function connectByProxy(
  place: Options, at: string, connect: Connector, callback: buildConnector.Callback,
  { timeout = CONNECT_MS }: ConnectOptions,
): void {
  const proxy = proxyFor(place);
  if (!proxy) return connect(place, callback);
  const isTls = place.protocol === "https:";
  const host = at.includes(":") ? `[${at}]` : at;
  openTunnel(proxy, `${host}:${place.port || (isTls ? 443 : 80)}`, timeout, (error, socket) => {
    if (error || !socket) return callback(error ?? new Error("no socket"), null);
    if (isTls) connect({ ...place, httpSocket: socket as Socket }, callback);
    else callback(null, socket as Socket);
  });
}

/** The `connect` option of a dispatcher. Without a proxy undici connects in its own way. */
export function connecting(options: ConnectOptions = {}): ConnectOptions | Connector {
  if (namedProxies().length === 0) return options;
  const connect = buildConnector(options);
  return (place, callback) =>
    connectByProxy(place, bareHost(place.hostname), connect, callback, options);
}
