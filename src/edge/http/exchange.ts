// One HTTP exchange: what a handler may read of the request and the only ways it may answer.
// Free of uWebSockets.js, so that everything above http/server.ts can be read without it.

export interface HttpRequest {
  readonly id: string;
  readonly method: string;
  /** Path as sent, still percent-encoded, without the query. */
  readonly path: string;
  readonly query: string;
  /** Values of the pattern's placeholders, decoded, in order. */
  readonly params: readonly string[];
  /** Lower-case names. Repeated headers are joined with a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** Client address, taken from `X-Forwarded-For` only behind a trusted proxy. */
  readonly address: string;
  /** How the client reached the trusted proxy before the server; null without one. */
  readonly forwardedScheme: "http" | "https" | null;
  /** Empty when there was none. */
  readonly body: Buffer;
  /** Set when the body was multipart/form-data and the route takes uploads. */
  readonly form?: MultipartForm;
}

export interface MultipartForm {
  fields: Readonly<Record<string, string>>;
  /** The part named `file`; on disk under a random name. `tooLarge`: it was cut at its bound. */
  file: { path: string; name: string; bytes: number; tooLarge: boolean } | null;
}

export type HeaderMap = Record<string, string>;

/** A reply in one piece, or a stream that outlives the handler. */
export type Reply =
  | { status: number; headers?: HeaderMap; json: unknown }
  | { status: number; headers?: HeaderMap; contentType: string; content: string | Buffer }
  | {
      status: number;
      headers?: HeaderMap;
      contentType: string;
      /** The body's length, where it is known: the client then notices if part is missing. */
      bytes?: number;
      stream: (stream: ByteStream) => void;
    };

/** A response body that is written over time. Once it is closed, every method is a no-op. */
export interface ByteStream {
  /** False when the client reads too slowly: hold back until `onDrain`. */
  write(data: string | Uint8Array): boolean;
  /** Called each time a congested client has caught up. */
  onDrain(callback: () => void): void;
  /** Called once, when the client has gone or `end`/`abort` was called. */
  onClose(callback: () => void): void;
  /** Ends the body as complete, after a last piece of text. */
  end(text?: string): void;
  /** Drops the connection, so that the client notices that the body is not complete. */
  abort(): void;
}

export const json = (status: number, body: unknown, headers?: HeaderMap): Reply =>
  headers ? { status, json: body, headers } : { status, json: body };

/** Whether an Accept header names it, in any case, with a weight above zero. */
export const accepts = (header: string | undefined, name: string): boolean =>
  (header ?? "").toLowerCase().split(",").some((wish) => {
    const [kind, ...params] = wish.split(";").map((part) => part.trim());
    return kind === name && !params.some((param) => /^q=0(\.0*)?$/.test(param));
  });

type Handler = (request: HttpRequest) => Reply | Promise<Reply>;

export interface HttpRoute {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";
  /** uWebSockets.js pattern: `/api/user/tools/:id`. */
  pattern: string;
  bodyBytesMax: number;
  handle: Handler;
  /** Accepts multipart/form-data too; the file is stored in this folder. */
  upload?: { folder: string; fileBytesMax: number; admit(request: HttpRequest): Promise<void> };
  /** Renders refusals made before the handler runs; absent: as `{message}`. Must not throw. */
  refuse?(error: unknown, request: HttpRequest | null): Reply;
}

/** A WebSocket after its upgrade. Once it is closed, every method is a no-op. */
export interface Socket {
  /** False when the client reads too slowly: hold back until `drained`. */
  send(text: string): boolean;
  /** A binary frame; the bytes are copied. False as with `send`. */
  sendBytes(bytes: Uint8Array): boolean;
  end(code: number, reason: string): void;
  readonly closed: boolean;
}

/** The close code of a socket whose peer vanished without a close frame. */
export const CUT_OFF = 1006;

export interface SocketHandlers {
  message(text: string): void;
  /** Absent: binary frames are a protocol error. The bytes are the handler's own. */
  bytes?(bytes: Buffer): void;
  drained(): void;
  /** The peer has answered a ping, so it is alive. */
  pong?(): void;
  closed(code: number): void;
}

export interface SocketRoute {
  pattern: string;
  /** The shape of refusals of the upgrade over HTTP. */
  errorShape: "message" | "conversation";
  /** Runs before the upgrade; throws a Fault to refuse. Its result is called at the open. */
  accept(request: HttpRequest): Promise<(socket: Socket) => SocketHandlers>;
}
