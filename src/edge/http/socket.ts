// WebSocket upgrades and sockets over uWebSockets.js. Used by http/server.ts only.
import type {
  HttpRequest as RawRequest,
  HttpResponse as RawResponse,
  TemplatedApp,
  WebSocket,
} from "uWebSockets.js";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { isFramingFault, renderFault, toFault } from "./errors.ts";
import type { HttpRequest, Socket, SocketHandlers, SocketRoute } from "./exchange.ts";
import { Exchange, type ExchangeOptions } from "./response.ts";

interface SocketState {
  open: (socket: Socket) => SocketHandlers;
  handlers: SocketHandlers | null;
  socket: OpenSocket | null;
}

class OpenSocket implements Socket {
  closed = false;
  readonly #raw: WebSocket<SocketState>;

  constructor(raw: WebSocket<SocketState>) {
    this.#raw = raw;
  }

  send(text: string): boolean {
    if (this.closed) return true;
    // 1: on its way, 0: buffered until the client reads, 2: dropped, the socket is being closed.
    return this.#raw.send(text) === 1;
  }

  sendBytes(bytes: Uint8Array): boolean {
    if (this.closed) return true;
    return this.#raw.send(bytes, true) === 1;
  }

  end(code: number, reason: string): void {
    if (this.closed) return;
    this.closed = true;
    this.#raw.end(code, reason);
  }
}

const CLOSE_PROTOCOL_ERROR = 4500;

export function mountSocket(
  app: TemplatedApp,
  route: SocketRoute,
  readRequest: (raw: RawResponse, req: RawRequest, paramCount: number) => HttpRequest,
  options: ExchangeOptions & { log: Logger },
): void {
  const paramCount = (route.pattern.match(/:/g) ?? []).length;
  const guarded = (raw: WebSocket<SocketState>, run: (state: SocketState) => void): void => {
    const state = raw.getUserData();
    try {
      run(state);
    } catch (error) {
      options.log.error({ err: error }, "socket handler failed");
      state.socket?.end(CLOSE_PROTOCOL_ERROR, "internal error");
    }
  };
  app.ws<SocketState>(route.pattern, {
    maxPayloadLength: LIMITS.socketFrameBytesMax,
    maxBackpressure: 4 * LIMITS.socketBufferBytesMax,
    closeOnBackpressureLimit: true,
    sendPingsAutomatically: true,
    idleTimeout: 60,
    upgrade: (raw, req, context) => {
      const exchange = new Exchange(raw, options);
      const refuse = (error: unknown): void => {
        const fault = toFault(error, options.log, exchange.request);
        exchange.reply(
          renderFault(fault, route.errorShape), isFramingFault(fault) ? { close: "at once" } : {});
      };
      const upgrade = ({ headers }: HttpRequest, open: SocketState["open"]): void => {
        // The client may have disconnected while `accept` was running.
        if (exchange.finished) return;
        raw.cork(() =>
          raw.upgrade<SocketState>(
            { open, handlers: null, socket: null },
            headers["sec-websocket-key"] ?? "",
            headers["sec-websocket-protocol"] ?? "",
            headers["sec-websocket-extensions"] ?? "",
            context,
          ));
      };
      try {
        // Read completely before the first await: the request is invalid after that.
        const request = readRequest(raw, req, paramCount);
        exchange.request = request;
        void route.accept(request).then((open) => upgrade(request, open)).catch(refuse);
      } catch (error) {
        refuse(error);
      }
    },
    open: (raw) =>
      guarded(raw, (state) => {
        state.socket = new OpenSocket(raw);
        state.handlers = state.open(state.socket);
      }),
    message: (raw, message, isBinary) =>
      guarded(raw, (state) => {
        const { handlers, socket } = state;
        if (!isBinary) handlers?.message(Buffer.from(message).toString("utf8"));
        // uWebSockets.js reuses the memory after this function returns.
        else if (handlers?.bytes) handlers.bytes(Buffer.from(message.slice(0)));
        else socket?.end(CLOSE_PROTOCOL_ERROR, "text frames only");
      }),
    drain: (raw) => guarded(raw, (state) => state.handlers?.drained()),
    pong: (raw) => guarded(raw, (state) => state.handlers?.pong?.()),
    close: (raw, code) =>
      guarded(raw, (state) => {
        if (state.socket) state.socket.closed = true;
        state.handlers?.closed(code);
      }),
  });
}
