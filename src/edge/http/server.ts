// The uWebSockets.js adaptor. In this library a synchronous throw or a missing onAborted aborts the
// process, and header values are not checked for line breaks; every route goes through `open`
// below, so that nothing above this file can make either mistake.
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { createSecureContext } from "node:tls";
import type {
  HttpRequest as RawRequest,
  HttpResponse as RawResponse,
  TemplatedApp,
  us_listen_socket,
} from "uWebSockets.js";
import { makeRoomForHeaders } from "#config/library.ts";
import { Fault, fieldFault, MisconfiguredStart, StartFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { framingFault, isFramingFault } from "./errors.ts";
import { createAddressReader, createSchemeReader } from "./address.ts";
import { Exchange } from "./response.ts";
import type { HttpRequest, HttpRoute, Reply, SocketRoute } from "./exchange.ts";
import { createMultipartReader } from "./multipart.ts";
import { mountSocket } from "./socket.ts";
import { createUploadPlaces, type UploadPlaces } from "./upload-places.ts";

makeRoomForHeaders();
const uWS = await import("uWebSockets.js");

/** What uWebSockets.js takes to leave its name and version out of answers. */
// The typings lack it.
(uWS as unknown as { _cfg(key: string): void })._cfg("999999990007");

interface HttpServerOptions {
  tls: { keyFile: string; certFile: string } | null;
  trustedProxies: string[];
  /** How many files may be uploaded at the same time. */
  uploadsMax: number;
  log: Logger;
  every: System["every"];
  newRequestId(): string;
  /** Renders whatever a handler threw; must not throw itself. */
  renderError(error: unknown, request: HttpRequest | null): Reply;
}

export interface HttpServer {
  /** Routes for GET also answer HEAD. */
  route(route: HttpRoute): void;
  socket(route: SocketRoute): void;
  /** Everything no route matched. */
  fallback(handle: HttpRoute["handle"]): void;
  /** Resolves to the real port; throws when it is taken. */
  listen(host: string, port: number): Promise<number>;
  isListening(): boolean;
  /** Refuses new connections; open ones continue. */
  stopListening(): void;
  /** Listens at its previous address again; false: it could not. */
  listenAgain(): boolean;
  /** Resolves when every accepted request is answered; a stream counts once it has started. */
  answered(): Promise<void>;
  /** Drops open connections. Idempotent. */
  close(): void;
}

/** µSockets' LIBUS_LISTEN_EXCLUSIVE_PORT, which the typings do not name. */
const LISTEN_EXCLUSIVE_PORT = 1;

const METHODS = {
  GET: "get", POST: "post", PUT: "put", PATCH: "patch", DELETE: "del", OPTIONS: "options",
} as const;

function safeRequestId(given: string | undefined): string | null {
  if (!given || given.length > LIMITS.requestIdCharsMax) return null;
  return /^[A-Za-z0-9._:-]+$/.test(given) ? given : null;
}

function decodeParam(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch (error) {
    if (error instanceof URIError) throw new Fault(400, "The URL is not valid.");
    throw error;
  }
}

/** Headers that may not repeat, because two readers could each use a different one. */
const SINGLE = new Set(["content-length", "transfer-encoding", "host"]);
const HOST = /^[A-Za-z0-9.\-_[\]:]{0,255}$/;

/** Reads the headers; throws on what front ends and this server could understand differently. */
function readHeaders(raw: RawRequest): Record<string, string> {
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  let ambiguous = false;
  raw.forEach((name, value) => {
    const earlier = headers[name];
    if (earlier === undefined) headers[name] = value;
    else if (SINGLE.has(name)) ambiguous = true;
    else headers[name] = `${earlier}, ${value}`;
  });
  const length = headers["content-length"];
  const encoding = headers["transfer-encoding"];
  if (length !== undefined && !/^\d{1,15}$/.test(length)) ambiguous = true;
  if (encoding !== undefined && (encoding !== "chunked" || length !== undefined)) ambiguous = true;
  if (!HOST.test(headers.host ?? "")) ambiguous = true;
  if (ambiguous) throw framingFault();
  return headers;
}

/** Collects the body, counting every chunk; `done` runs at most once, never after an abort. */
function readBody(
  raw: RawResponse,
  exchange: Exchange,
  bytesMax: number,
  done: (body: Buffer) => void,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let refused = false;
  raw.onData((chunk, isLast) => {
    if (refused || exchange.finished) return;
    bytes += chunk.byteLength;
    if (bytes > bytesMax) {
      refused = true;
      chunks.length = 0;
      return exchange.refuse(new Fault(413, "The request body is too large."));
    }
    // uWebSockets.js reuses the chunk's memory after this callback.
    if (chunk.byteLength > 0) chunks.push(Buffer.from(Buffer.from(chunk)));
    if (isLast) done(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
  });
}

type Take = (chunk: Buffer, isLast: boolean) => void;

/**
 * Passes the body on once its sender is admitted. Until then the connection is paused, and what
 * came in one read with the headers waits in memory. If that is the whole body, nothing is paused:
 * resuming would make uWebSockets.js expect more within ten seconds, and so limit the handler to
 * them.
 */
function readOnceAdmitted(
  raw: RawResponse, exchange: Exchange, admitted: Promise<void>, begin: () => Take,
): void {
  const early: Parameters<Take>[] = [];
  let bytesInTime = 0;
  let take: Take | null = null;
  let isWhole = false;
  let isPaused = false;
  raw.onData((chunk, isLast) => {
    if (exchange.finished) return;
    isWhole = isLast;
    // uWebSockets.js reuses the chunk's memory after this callback.
    const copy = Buffer.from(Buffer.from(chunk));
    if (!take) return void early.push([copy, isLast]);
    take(copy, isLast);
    bytesInTime += copy.byteLength;
    if (isLast || bytesInTime < LIMITS.uploadBytesInTimeMin || exchange.finished) return;
    // Restarts its ten-second timeout: uWebSockets.js itself demands 160 kB in each.
    bytesInTime = 0;
    raw.pause();
    raw.resume();
  });
  // Chunks read together with the headers are delivered first.
  setImmediate(() => {
    if (take || isWhole || exchange.finished) return;
    isPaused = true;
    raw.pause();
  });
  admitted.finally(() => {
    if (isPaused && !exchange.finished) raw.resume();
  }).then(() => {
    if (exchange.finished) return;
    take = begin();
    for (const part of early.splice(0)) take(...part);
  }).catch((error: unknown) => exchange.refuse(error));
}

/** Like `readBody`, for forms with a file: chunks go to disk, not into memory. */
function readForm(
  exchange: Exchange,
  request: HttpRequest,
  { upload, handle }: Required<Pick<HttpRoute, "upload" | "handle">>,
  { places, newRequestId }: { places: UploadPlaces } & HttpServerOptions,
  run: Handlers["run"],
): Take {
  const bytesMax = upload.fileBytesMax + LIMITS.multipartOverheadBytesMax;
  const reader = createMultipartReader(
    request.headers["content-type"] ?? "", { ...upload, newName: newRequestId });
  const giveBack = places.take(request.address);
  let isAtWork = false;
  exchange.onFinish(() => {
    giveBack();
    if (!isAtWork) reader.abort();
  });
  /** Keeps the file until the handler is done, even if the client disconnects before. */
  const handleWhole: HttpRoute["handle"] = async (whole) => {
    isAtWork = true;
    try {
      return await handle(whole);
    } finally {
      reader.abort();
    }
  };
  let bytes = 0;
  let refused = false;
  return (chunk, isLast) => {
    if (refused || exchange.finished) return;
    bytes += chunk.byteLength;
    if (bytes > bytesMax) {
      refused = true;
      reader.abort();
      return exchange.refuse(tooLargeFile(upload.fileBytesMax));
    }
    reader.write(chunk);
    if (!isLast) return;
    reader.end().then(
      (form) => run(exchange, { ...request, form }, handleWhole),
      (error: unknown) => exchange.fail(error));
  };
}

export function tooLargeFile(bytesMax: number): Fault {
  return fieldFault("file", `The file may not be greater than ${bytesMax / 1024} kilobytes.`);
}

type RequestReader = (raw: RawResponse, req: RawRequest, paramCount: number) => HttpRequest;

function createRequestReader(options: HttpServerOptions): RequestReader {
  const readAddress = createAddressReader(options.trustedProxies);
  const readScheme = createSchemeReader(options.trustedProxies);
  return (raw, req, paramCount) => {
    const headers = readHeaders(req);
    const remote = Buffer.from(raw.getRemoteAddressAsText()).toString("latin1");
    const params: string[] = [];
    for (let index = 0; index < paramCount; index += 1) {
      params.push(decodeParam(req.getParameter(index) ?? ""));
    }
    return {
      id: safeRequestId(headers["x-request-id"]) ?? options.newRequestId(),
      method: req.getCaseSensitiveMethod(),
      path: req.getUrl(),
      query: req.getQuery() ?? "",
      params,
      headers,
      address: readAddress(remote, headers["x-forwarded-for"]),
      forwardedScheme: readScheme(remote, headers["x-forwarded-proto"]),
      body: Buffer.alloc(0),
    };
  };
}

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

interface Handlers {
  run(exchange: Exchange, request: HttpRequest, handle: HttpRoute["handle"]): void;
  /** Resolves when no handler is running. */
  settled(): Promise<void>;
}

function createHandlers(): Handlers {
  const underWay = new Set<Promise<void>>();
  const work: Handlers["run"] = (exchange, request, handle) => {
    try {
      const reply = handle(request);
      if (reply instanceof Promise) {
        const answered = reply
          .then((value) => exchange.reply(value))
          .catch((error: unknown) => exchange.fail(error))
          .finally(() => underWay.delete(answered));
        underWay.add(answered);
      } else exchange.reply(reply);
    } catch (error) {
      exchange.fail(error);
    }
  };
  return {
    run: (exchange, request, handle) => {
      exchange.request = request;
      if (SAFE_METHODS.has(request.method)) return work(exchange, request, handle);
      // uWebSockets.js closes a connection that sends its next request before this one is answered,
      // as soon as it has parsed that far. Handlers that change something start after that, so that
      // no request takes effect and loses its answer.
      setImmediate(() => {
        if (!exchange.finished) work(exchange, request, handle);
      });
    },
    settled: async () => {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

/** Wraps every route: each request it opens is answered exactly once, whatever happens. */
function createOpener(
  options: HttpServerOptions, readRequest: RequestReader, run: Handlers["run"],
) {
  const uploading = { ...options, places: createUploadPlaces(options.uploadsMax) };
  return (route: Omit<HttpRoute, "method">) => {
    const paramCount = (route.pattern.match(/:/g) ?? []).length;
    return (raw: RawResponse, req: RawRequest): void => {
      const exchange = new Exchange(raw, {
        every: options.every,
        renderError: route.refuse ?? options.renderError,
      });
      try {
        const request = readRequest(raw, req, paramCount);
        exchange.request = request;
        const expectsBody = request.headers["content-length"] !== undefined
          || request.headers["transfer-encoding"] !== undefined;
        const { upload, handle } = route;
        if (!expectsBody) return run(exchange, request, handle);
        if (upload && /^multipart\/form-data\b/i.test(request.headers["content-type"] ?? "")) {
          return readOnceAdmitted(raw, exchange, upload.admit(request), () =>
            readForm(exchange, request, { upload, handle }, uploading, run));
        }
        if (Number(request.headers["content-length"] ?? 0) > route.bodyBytesMax) {
          throw new Fault(413, "The request body is too large.");
        }
        readBody(raw, exchange, route.bodyBytesMax, (body) =>
          run(exchange, { ...request, body }, handle));
      } catch (error) {
        if (isFramingFault(error)) exchange.fail(error, { close: "at once" });
        else exchange.refuse(error);
      }
    };
  };
}

const LISTEN_ERRORS: Record<string, string> = {
  EADDRINUSE: "another program uses the port; stop it or set PARLEY_PORT",
  EACCES: "this user may not use the port; set PARLEY_PORT to one above 1023",
  EADDRNOTAVAIL: "the machine has no such address; set PARLEY_HOST",
  ENOTFOUND: "the name has no address; set PARLEY_HOST",
};

/** uWebSockets.js does not say why it failed; the system's error for the same attempt does. */
function whyNoListening(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.on("error", ({ code = "" }: NodeJS.ErrnoException) => {
      const unknown = `${code}; check PARLEY_HOST and PARLEY_PORT`;
      resolve(LISTEN_ERRORS[code] ?? unknown);
    });
    probe.listen({ host, port, exclusive: true }, () => {
      probe.close();
      resolve("the system refused it; try again");
    });
  });
}

/** uWebSockets.js does not say what is wrong with a key or a certificate; OpenSSL does. */
function createSslApp({ keyFile, certFile }: NonNullable<HttpServerOptions["tls"]>): TemplatedApp {
  try {
    createSecureContext({ key: readFileSync(keyFile), cert: readFileSync(certFile) });
  } catch (error) {
    throw new MisconfiguredStart("PARLEY_TLS_KEY_FILE and PARLEY_TLS_CERT_FILE cannot be used"
      + ` together: ${(error as Error).message}`);
  }
  return uWS.SSLApp({ key_file_name: keyFile, cert_file_name: certFile });
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const app: TemplatedApp = options.tls ? createSslApp(options.tls) : uWS.App();
  let listening: us_listen_socket | null = null;
  let place = { host: "", port: 0 };
  let isClosed = false;
  /** The callback runs before `listen` returns. */
  const listenOn = (host: string, port: number): boolean => {
    // The typings lack this form. Without the option two servers could share a port unnoticed.
    const listen = app.listen.bind(app) as unknown as (
      host: string,
      port: number,
      options: number,
      callback: (socket: us_listen_socket | false) => void,
    ) => void;
    listen(host, port, LISTEN_EXCLUSIVE_PORT, (socket) => {
      listening = socket || null;
    });
    if (listening) place = { host, port: uWS.us_socket_local_port(listening) };
    return listening !== null;
  };

  const readRequest = createRequestReader(options);
  const handlers = createHandlers();
  const open = createOpener(options, readRequest, handlers.run);

  return {
    route: (route) => {
      app[METHODS[route.method]](route.pattern, open(route));
      if (route.method === "GET") app.head(route.pattern, open(route));
    },
    socket: (route) => mountSocket(app, route, readRequest, options),
    fallback: (handle) =>
      app.any("/*", open({ pattern: "/*", bodyBytesMax: LIMITS.bodyBytesMax, handle })),
    listen: async (host, port) => {
      if (listenOn(host, port)) return place.port;
      const why = await whyNoListening(host, port);
      throw new StartFailure(`cannot listen on ${host}:${port}: ${why}`);
    },
    isListening: () => listening !== null,
    listenAgain: () => listenOn(place.host, place.port),
    stopListening: () => {
      if (listening) uWS.us_listen_socket_close(listening);
      listening = null;
    },
    answered: handlers.settled,
    close: () => {
      if (!isClosed) app.close();
      isClosed = true;
    },
  };
}
