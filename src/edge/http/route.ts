// The Route record: one description gives a route its types, validation, error shape and its place
// in the OpenAPI document. Features list these in their routes.ts; http/api.ts mounts them.
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { Fault } from "#core/faults.ts";
import type { HttpRequest, Reply } from "./exchange.ts";
import type { Tag } from "./tags.ts";

/** Who asks, as far as the edge needs to know. */
export interface Caller {
  accountId: number;
  /** 0: no key, but a member who is signed in. */
  keyId: number;
  scopes: readonly string[];
  /** What the caller may do at most, whatever the scopes; which roles there are is accounts'. */
  role: string;
  /** Who is signed in, by which session. */
  member?: { userId: number; sessionId: number };
  /** Reads with a dashboard session, which has a rate of its own. */
  session?: true;
}

/** Keys that only read, and members who do not build, see masks where secrets are. */
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
  /** There for clients that call it, but not offered: the OpenAPI document leaves it out. */
  isUndocumented?: true;
  /** What somebody who has never used it has to know; absent: the summary says it all. */
  description?: string;
  /** What the placeholders of the path name, for the OpenAPI document. */
  params?: Record<string, TSchema>;
  /** Headers the handler reads, for the OpenAPI document. */
  headers?: Record<string, TSchema>;
  query?: Query;
  body?: Body;
  errorShape: ErrorShape;
  /**
   * Refusals in the words of another protocol, instead of the error shape; that one is left for
   * what the server refuses before it has read the request.
   */
  refusals?: { schema: TSchema; render(fault: Fault): Reply };
  /** Error text of the 404 when the path's placeholder cannot name anything. */
  notFound?: string;
  /** Top-level message of a 422; absent: the first field's own message. */
  invalidMessage?: string;
  /** Absent: LIMITS.bodyBytesMax. */
  bodyBytesMax?: number;
  /**
   * Takes multipart/form-data too: fields are the body, `http.form` has the file, which is removed
   * once the reply is sent, so a handler that keeps it moves it away.
   */
  upload?: {
    folder: string; fileBytesMax: number;
    /** There is something to do without a file, so JSON is a body, too. */
    isOptional?: true;
    /** On a public route: throws a Fault before a byte of the file is stored. */
    admit?(request: HttpRequest): Promise<void>;
  };
  /** Keyed by status, the success first. Refusals any such route may give need no mention. */
  responses: Record<number, Answer>;
}

export interface Answer {
  description: string;
  /** Absent: a refusal in the route's error shape, or without one. */
  schema?: TSchema;
  /** Absent: JSON. */
  contentType?: string;
  /** What comes in its place on some servers. */
  otherContentType?: string | string[];
  /** The same as a stream, for `Accept: text/event-stream`. */
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
  /** The handler asks for the API key itself, as its protocol wants it; pages may call it too. */
  asksForKey?: true;
  /** For the server's own pages: refused where another site's page asks, and no other is let in. */
  ownPages?: true;
  handle(request: RouteRequest<Static<Query>, Static<Body>>): Reply | Promise<Reply>;
}

/** Any route, its types erased: what was inferred has done its work in the handler. */
export type Route = KeyRoute | PublicRoute;

/** A route of the account: needs an API key; the handler gets its caller. */
export function keyRoute<Query extends TObject, Body extends TObject>(
  route: Omit<KeyRoute<Query, Body>, "auth">,
): Route {
  return { ...route, auth: "key" } as unknown as Route;
}

/** A route anybody may call: a conversation's uuid is the capability. */
export function publicRoute<Query extends TObject, Body extends TObject>(
  route: Omit<PublicRoute<Query, Body>, "auth">,
): Route {
  return { ...route, auth: "public" } as unknown as Route;
}
