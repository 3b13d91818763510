// The Route record: one description gives a route its types, validation, error shape and entry in
// the OpenAPI document. Features list these in their routes.ts; http/api.ts mounts them.
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { Fault } from "#core/faults.ts";
import type { HttpRequest, Reply } from "./exchange.ts";
import type { Tag } from "./tags.ts";

/** The caller of a request, as far as the edge needs to know. */
export interface Caller {
  accountId: number;
  /** 0: a signed-in member instead of a key. */
  keyId: number;
  scopes: readonly string[];
  /** Limits what the caller may do, whatever the scopes; the accounts feature defines the roles. */
  role: string;
  /** The signed-in member and their session. */
  member?: { userId: number; sessionId: number };
  /** Set for reads through a dashboard session, which have their own rate limit. */
  session?: true;
}

/** Read-only keys, and members who may not build, get masks in place of secrets. */
export const seesSecrets = ({ scopes }: Caller): boolean => scopes.includes("write");

/**
 * The contract's error bodies: `{message}`, `{error}`, `{status:false,error}`,
 * `{success:false,error,error_code}`. Validation errors are `{message, errors}` everywhere.
 */
export type ErrorShape = "message" | "error" | "conversation" | "success";

export interface RouteRequest<Query, Body> {
  query: Query;
  body: Body;
  /** The `{id}` of the path as a number; 0 when the path has none. */
  id: number;
  /** The `{uuid}` of the path in lower case; empty when the path has none. */
  uuid: string;
  http: HttpRequest;
  /** Absolute URL of the API root as the client sees it, without a trailing slash. */
  baseUrl: string;
}

type KeyRequest<Query, Body> = RouteRequest<Query, Body> & { caller: Caller };

interface RouteBase<Query extends TObject, Body extends TObject> {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below the API root: `/user/assistant/{id}`. Placeholders: `{id}` (integer), `{uuid}`. */
  path: string;
  /** Other spellings of the same operation that clients use. */
  aliases?: string[];
  tag: Tag;
  summary: string;
  /** Served for existing clients, but left out of the OpenAPI document. */
  isUndocumented?: true;
  /** What a newcomer must know; absent: the summary says it all. */
  description?: string;
  /** Schemas of the path's placeholders, for the OpenAPI document. */
  params?: Record<string, TSchema>;
  /**
   * A request repeated with its Idempotency-Key gets the first answer (repeatable.ts). Absent: if
   * it creates something, which its 201 or 202 says.
   */
  isRepeatable?: boolean;
  /** Headers the handler reads, for the OpenAPI document. */
  headers?: Record<string, TSchema>;
  query?: Query;
  body?: Body;
  errorShape: ErrorShape;
  /**
   * Renders refusals as another protocol words them, instead of the error shape; that is used only
   * for what is refused before the request was read.
   */
  refusals?: { schema: TSchema; render(fault: Fault): Reply };
  /** Error text of the 404 when the path's placeholder cannot name anything. */
  notFound?: string;
  /** Top-level message of a 422; absent: the first field's own message. */
  invalidMessage?: string;
  /** Absent: LIMITS.bodyBytesMax. */
  bodyBytesMax?: number;
  /**
   * Also accepts multipart/form-data: its fields are the body, `http.form` has the file, which is
   * removed once the reply is sent, so a handler that keeps the file moves it away.
   */
  upload?: {
    folder: string; fileBytesMax: number;
    /** The file is optional, so a JSON body is accepted, too. */
    isOptional?: true;
    /** On a public route: throws a Fault before a byte of the file is stored. */
    admit?(request: HttpRequest): Promise<void>;
  };
  /** Keyed by status, the success first. Refusals any such route may give need not be listed. */
  responses: Record<number, Answer>;
}

export interface Answer {
  description: string;
  /** Absent: a refusal in the route's error shape, or no body. */
  schema?: TSchema;
  /** Absent: JSON. */
  contentType?: string;
  /** Other content types that some servers answer with instead. */
  otherContentType?: string | string[];
  /** The schema of the same answer as a stream, for `Accept: text/event-stream`. */
  stream?: TSchema;
}

export interface KeyRoute<Query extends TObject = TObject, Body extends TObject = TObject>
  extends RouteBase<Query, Body> {
  auth: "key";
  /** Absent: `read` for GET, `write` for everything else. */
  scope?: "read" | "write";
  /** Also let in by `?ticket=`, for browsers' EventSource. */
  acceptsTicket?: boolean;
  handle(request: KeyRequest<Static<Query>, Static<Body>>): Reply | Promise<Reply>;
}

interface PublicRoute<Query extends TObject = TObject, Body extends TObject = TObject>
  extends RouteBase<Query, Body> {
  auth: "public";
  /** The handler reads the API key itself, as its protocol demands; pages may call it, too. */
  asksForKey?: true;
  /** For the server's own pages only: requests from other sites' pages are refused. */
  ownPages?: true;
  handle(request: RouteRequest<Static<Query>, Static<Body>>): Reply | Promise<Reply>;
}

/** Any route, its types erased: they only matter inside the handler. */
export type Route = KeyRoute | PublicRoute;

/** A route of the account: needs an API key; the handler gets its caller. */
export function keyRoute<Query extends TObject, Body extends TObject>(
  route: Omit<KeyRoute<Query, Body>, "auth">,
): Route {
  return { ...route, auth: "key" } as unknown as Route;
}

/** A route anyone may call: knowing a conversation's uuid is the permission. */
export function publicRoute<Query extends TObject, Body extends TObject>(
  route: Omit<PublicRoute<Query, Body>, "auth">,
): Route {
  return { ...route, auth: "public" } as unknown as Route;
}
