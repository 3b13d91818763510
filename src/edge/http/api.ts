// Mounts Route records under the API root: parameters, authentication, scopes, rate limits,
// validation, CORS of the public routes, error shapes, metrics. One wrapper for every route.
import type { TObject } from "@sinclair/typebox";
import type { FailedAuthentications } from "#core/failed-authentications.ts";
import { Fault, restarting } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { isUuid } from "#core/values.ts";
import { rateLimitFault, renderFault, toFault } from "./errors.ts";
import type { HeaderMap, HttpRequest, HttpRoute, Reply } from "./exchange.ts";
import type { RateDecision } from "#core/rate-limit.ts";
import type { Caller, KeyRoute, Route, RouteRequest } from "./route.ts";
import type { HttpServer } from "./server.ts";
import { inZone, type DayQuery } from "./pagination.ts";
import { compileValidation, parseJsonObject, parseQuery, type Validate } from "./validation.ts";

export const API_ROOT = "/api";

/** What is wrong with a request's key, for the person who must fix it. */
type Unauthenticated = "missing" | "unknown" | "revoked" | "expired";

export interface ApiOptions {
  server: HttpServer;
  log: Logger;
  /** The key's owner, or why the key is not valid. */
  authenticate(token: string): Promise<Caller | Exclude<Unauthenticated, "missing">>;
  /** The caller a stream ticket was issued to; null for anything but a valid ticket. */
  redeemTicket(ticket: string): Promise<Caller | null>;
  /** The member signed in by the request's cookie; null where nobody is. */
  findMember(http: HttpRequest): Promise<Caller | null>;
  /** False for a request that a page of another site has sent. */
  isOwnPage(http: HttpRequest): boolean;
  /** Throws Fault 403, naming the right that the caller's role lacks. */
  assertMay(caller: Caller, route: KeyRoute): void;
  /** The caller of a dashboard session's token, which only reads; null for any other token. */
  findSession(token: string): Promise<Caller | null>;
  failures: FailedAuthentications;
  /** Counts a request of the caller; null switches limits off. */
  takeRate: ((caller: Caller) => RateDecision | Promise<RateDecision>) | null;
  /** The IANA time zone of the account's days. */
  zoneOf(accountId: number): Promise<string>;
  /** Absolute URL of the API root for this request, without a trailing slash. */
  baseUrlOf(request: HttpRequest): string;
  /** Called once per finished handler, with the route's template, never the raw URL. */
  observe(method: string, path: string, status: number, seconds: number): void;
  /** Registers a route's metric series ahead, so that a stranger's first request adds none. */
  expect(method: string, path: string): void;
  /** Whether pages of this origin may use the conversation; asked for routes with a `{uuid}`. */
  allowsOrigin(origin: string, conversationUuid: string, http: HttpRequest): Promise<boolean>;
  /** Whether a preflight of this path may name the page's origin; "" where there is no uuid. */
  allowsPreflight(path: string, uuid: string, http: HttpRequest): Promise<boolean>;
  /** True while the server is stopping: nothing new is taken on. */
  draining(): boolean;
  system: System;
}

const patternOf = (path: string): string =>
  API_ROOT + path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `:${name}`);

function bearerToken(header: string | undefined): string | null {
  const match = /^Bearer +(\S+)$/i.exec(header ?? "");
  return match?.[1] ?? null;
}

function unauthenticated(path: string, reason: Unauthenticated): Fault {
  // The contract documents another error shape for this one prefix.
  if (path.startsWith("/automate/")) {
    return new Fault(401, "Unauthorized", { extra: { error: "Unauthorized", status: undefined } });
  }
  return new Fault(401, "Unauthenticated.", {
    extra: { message: "Unauthenticated.", error: "Unauthorized", reason },
  });
}

/** Reading needs `read`, everything else `write`. */
const scopeOf = (route: KeyRoute): "read" | "write" =>
  route.scope ?? (route.method === "GET" ? "read" : "write");

function assertMay(options: ApiOptions, caller: Caller, route: KeyRoute): void {
  options.assertMay(caller, route);
  // A member's rights depend on the role alone.
  if (caller.member || caller.scopes.includes(scopeOf(route))) return;
  const message = "Your API key does not have permission for this resource";
  throw new Fault(403, message, { extra: { error: "Insufficient permissions", message } });
}

function rateHeaders(decision: RateDecision, system: System): HeaderMap {
  const nowMs = system.now() / 1000;
  return {
    "X-RateLimit-Limit": String(decision.limit),
    "X-RateLimit-Remaining": String(decision.remaining),
    "X-RateLimit-Reset": String(Math.ceil((nowMs + decision.resetMs) / 1000)),
  };
}

interface Prepared {
  route: Route;
  path: string;
  placeholder: "id" | "uuid" | null;
  query: Validate<unknown> | null;
  body: Validate<unknown> | null;
}

function prepare(route: Route, path: string): Prepared {
  const options = {
    isNew: route.method === "POST",
    ...route.invalidMessage === undefined ? {} : { message: route.invalidMessage },
  };
  const compile = (schema: TObject | undefined): Validate<unknown> | null =>
    schema ? compileValidation(schema, options) : null;
  const placeholder = path.includes("{id}") ? "id" : path.includes("{uuid}") ? "uuid" : null;
  return { route, path, placeholder, query: compile(route.query), body: compile(route.body) };
}

function readTarget(prepared: Prepared, http: HttpRequest): { id: number; uuid: string } {
  const value = http.params[0] ?? "";
  const notFound = (): Fault => new Fault(404, prepared.route.notFound ?? "Not found");
  if (prepared.placeholder === "id") {
    if (!/^\d{1,15}$/.test(value)) throw notFound();
    return { id: Number(value), uuid: "" };
  }
  if (prepared.placeholder === "uuid") {
    if (!isUuid(value)) throw notFound();
    return { id: 0, uuid: value.toLowerCase() };
  }
  return { id: 0, uuid: "" };
}

/** The method and route in metrics of requests without a valid key. */
const NOBODY = "none";

export function mountApi(options: ApiOptions, routes: Route[]): void {
  options.expect(NOBODY, NOBODY);
  for (const route of routes) {
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      mountRoute(options, prepare(route, path));
    }
  }
  mountPreflight(options, routes);
}

const bodyOf = (http: HttpRequest): unknown =>
  http.form ? { ...http.form.fields } : parseJsonObject(http.body, http.headers["content-type"]);

/** Checks whether the caller may upload at all before a byte of the file is stored. */
function uploadOf(options: ApiOptions, { route, path }: Prepared): Partial<HttpRoute> {
  const { upload } = route;
  if (!upload) return {};
  const admit = async (http: HttpRequest): Promise<void> => route.auth === "key"
    ? assertMay(options, await callerOf(options, route, http, path), route)
    : upload.admit?.(http);
  return { upload: { ...upload, admit } };
}

function mountRoute(options: ApiOptions, prepared: Prepared): void {
  const { route, path } = prepared;
  const render = (error: unknown, http: HttpRequest | null, headers: HeaderMap): Reply => {
    const fault = toFault(error, options.log, http);
    if (fault.code === ORIGIN_REFUSED) delete headers["Access-Control-Allow-Origin"];
    const reply = route.refusals?.render(fault) ?? renderFault(fault, route.errorShape);
    return { ...reply, headers: { ...headers, ...reply.headers } };
  };
  const headersFor = (http: HttpRequest | null): HeaderMap =>
    isForPages(route) && http ? corsHeaders(http) : {};

  const isPublic = route.auth === "public";
  if (isPublic) options.expect(route.method, path);
  const handle = async (
    http: HttpRequest, extraHeaders: HeaderMap, onKnown: () => void,
  ): Promise<Reply> => {
    if (options.draining()) throw restarting();
    const caller = route.auth === "key"
      ? await authorize(options, route, path, http, extraHeaders)
      : null;
    onKnown();
    const target = readTarget(prepared, http);
    if (route.auth === "public") {
      if (route.ownPages) assertOwnPage(options, http);
      else await assertOrigin(options, target.uuid, http);
    }
    const request: RouteRequest<unknown, unknown> = {
      ...target,
      query: prepared.query ? prepared.query(parseQuery(http.query)) : {},
      body: prepared.body ? prepared.body(bodyOf(http)) : {},
      http,
      baseUrl: options.baseUrlOf(http),
    };
    if (route.auth === "key" && caller) {
      const query = await inZone(request.query as DayQuery, () => options.zoneOf(caller.accountId));
      return route.handle({ ...request, query, caller } as never);
    }
    return (route.handle as (request: unknown) => Reply | Promise<Reply>)(request);
  };

  options.server.route({
    method: route.method,
    pattern: patternOf(path),
    bodyBytesMax: route.bodyBytesMax ?? LIMITS.bodyBytesMax,
    refuse: (error, http) => render(error, http, headersFor(http)),
    ...uploadOf(options, prepared),
    handle: async (http) => {
      const startedMs = options.system.monotonicMs();
      const headers = headersFor(http);
      let isKnown = isPublic;
      const finish = (reply: Reply): Reply => {
        const seconds = (options.system.monotonicMs() - startedMs) / 1000;
        if (isKnown) options.observe(route.method, path, reply.status, seconds);
        else options.observe(NOBODY, NOBODY, reply.status, seconds);
        return { ...reply, headers: { ...headers, ...reply.headers } };
      };
      try {
        return finish(await handle(http, headers, () => (isKnown = true)));
      } catch (error) {
        return finish(render(error, http, headers));
      }
    },
  });
}

async function authorize(
  options: ApiOptions,
  route: KeyRoute,
  path: string,
  http: HttpRequest,
  headers: HeaderMap,
): Promise<Caller> {
  const caller = await callerOf(options, route, http, path);
  const decision = await options.takeRate?.(caller);
  if (decision) {
    Object.assign(headers, rateHeaders(decision, options.system));
    if (!decision.allowed) throw rateLimitFault(decision.retryAfterMs, route.errorShape);
  }
  assertMay(options, caller, route);
  return caller;
}

/** Identifies a session token, a member's cookie, a key or a ticket; throws Fault 401 for none. */
async function callerOf(
  options: ApiOptions, route: KeyRoute, http: HttpRequest, path: string,
): Promise<Caller> {
  const isReading = scopeOf(route) === "read";
  const session = isReading
    ? await options.findSession(bearerToken(http.headers.authorization) ?? "")
    : null;
  if (session) return session;
  const member = http.headers.authorization === undefined && options.isOwnPage(http)
    ? await options.findMember(http)
    : null;
  if (!member) return identify(options, http, route.acceptsTicket ?? false, path);
  if (route.method !== "GET") assertOwnPage(options, http);
  return isReading ? { ...member, session: true } : member;
}

/** A browser may send the cookie on behalf of another site's page: such requests are refused. */
function assertOwnPage(options: ApiOptions, http: HttpRequest): void {
  if (options.isOwnPage(http)) return;
  const message = "This did not come from a page of this server. Behind a proxy, set "
    + "PARLEY_PUBLIC_URL to the address people use.";
  throw new Fault(403, message, { extra: { error: "Foreign page", message } });
}

/**
 * The bearer key's owner, or the ticket's where allowed; throws Fault 401, or 429 after many
 * failures.
 */
export async function identify(
  options: Pick<ApiOptions, "authenticate" | "redeemTicket" | "failures" | "isOwnPage">,
  http: HttpRequest,
  acceptsTicket: boolean,
  path = http.path,
): Promise<Caller> {
  const token = bearerToken(http.headers.authorization);
  const ticket = acceptsTicket ? parseQuery(http.query).ticket : undefined;
  const found = token !== null
    ? await options.authenticate(token)
    : ticket === undefined ? "missing" : await options.redeemTicket(ticket) ?? "unknown";
  const reason = typeof found === "string" ? found : "unknown";
  if (typeof found === "object" && !(found.member && !options.isOwnPage(http))) return found;
  if (token !== null || ticket !== undefined) {
    const kind = token === null ? "stream_ticket" : "api_key";
    const waitMs = options.failures.record(http.address, kind);
    if (waitMs > 0) throw rateLimitFault(waitMs, "message");
  }
  throw unauthenticated(path, reason);
}

/** The fault's code when a page's origin may not use this assistant. */
const ORIGIN_REFUSED = "origin_refused";

export function originFault(): Fault {
  return new Fault(403, "This origin may not use this assistant.", { code: ORIGIN_REFUSED });
}

async function assertOrigin(
  options: ApiOptions, uuid: string, http: HttpRequest,
): Promise<void> {
  const { origin } = http.headers;
  if (origin === undefined || uuid === "") return;
  if (!await options.allowsOrigin(origin, uuid, http)) throw originFault();
}

/** The headers a browser requires before it gives a public reply to the page that asked. */
export function corsHeaders(http: HttpRequest): HeaderMap {
  const { origin } = http.headers;
  if (origin === undefined) return { Vary: "Origin" };
  return {
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Expose-Headers": "Idempotency-Replayed, Retry-After, X-Request-Id",
    Vary: "Origin",
  };
}

const PREFLIGHT_SECONDS = "600";

/** SDKs add headers of their own, which have no effect here, so any may be sent. */
function askedHeaders(http: HttpRequest): string {
  const asked = http.headers["access-control-request-headers"] ?? "";
  return /^[\w-]+(\s*,\s*[\w-]+)*$/.test(asked) ? asked : "Authorization, Content-Type";
}

export const preflightReply = (http: HttpRequest, methods: string): Reply => ({
  status: 204,
  contentType: "text/plain",
  content: "",
  headers: {
    ...corsHeaders(http),
    "Access-Control-Allow-Methods": methods,
    "Access-Control-Allow-Headers": askedHeaders(http),
    "Access-Control-Max-Age": PREFLIGHT_SECONDS,
  },
});

/** Pages of other origins may call it. */
export const isForPages = (route: Route): boolean => route.auth === "public" && !route.ownPages;

/** Answers preflights of public routes: CORS headers are sent only to origins that are allowed. */
function mountPreflight(options: ApiOptions, routes: Route[]): void {
  const pathsOf = (route: Route): string[] => [route.path, ...(route.aliases ?? [])];
  for (const path of new Set(routes.filter(isForPages).flatMap(pathsOf))) {
    const methods = routes.filter((route) => pathsOf(route).includes(path))
      .map((route) => route.method);
    options.server.route({
      method: "OPTIONS",
      pattern: patternOf(path),
      bodyBytesMax: 0,
      handle: async (http) => {
        const uuid = (http.params[0] ?? "").toLowerCase();
        const isSane = !path.includes("{uuid}") || isUuid(uuid);
        if (http.headers.origin === undefined || !isSane
          || !await options.allowsPreflight(path, uuid, http)) {
          return {
            status: 403, contentType: "text/plain", content: "", headers: { Vary: "Origin" },
          };
        }
        return preflightReply(http, methods.join(", "));
      },
    });
  }
}
