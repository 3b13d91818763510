// Cal.com for tests: the three routes of its API v2 that are used, by their published schema, with
// one account, one event type of its user and one of its team. A booked time is no longer free.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "#support/local-server.ts";

const KEY = "cal_live_canary_5d1e";
const USERNAME = "bob";
const TEAM = "front-desk";
const EVENT = "intro";
const BODY_MEMBERS = new Set([
  "start", "eventTypeId", "eventTypeSlug", "username", "teamSlug", "organizationSlug", "attendee",
  "bookingFieldsResponses", "guests", "metadata", "lengthInMinutes",
]);

export interface CalcomServer {
  url: string;
  key: string;
  /** Bodies of bookings, booked or not. */
  asked: Record<string, unknown>[];
  /** Paths with their queries. */
  paths: string[];
  close(): Promise<void>;
}

function fail(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({
    status: "error", timestamp: new Date().toISOString(), path: "/v2",
    error: { code, message, details: { message, statusCode: status } },
  }));
}

function done(response: ServerResponse, status: number, data: unknown): void {
  response.writeHead(status, { "content-type": "application/json" })
    .end(JSON.stringify({ status: "success", data }));
}

const knowsEvent = (given: { get(name: string): unknown }): boolean =>
  given.get("eventTypeSlug") === EVENT
  && (given.get("username") === USERNAME || given.get("teamSlug") === TEAM);

/** `free`: instants, as ISO 8601 in UTC. */
export async function startCalcom(free: string[]): Promise<CalcomServer> {
  const open = new Set(free.map((text) => Date.parse(text)));
  const asked: CalcomServer["asked"] = [];
  const paths: string[] = [];

  const slots = (url: URL, response: ServerResponse): void => {
    if (!knowsEvent(url.searchParams)) return fail(response, 404, "NotFoundException", "Event type not found");
    const from = Date.parse(`${url.searchParams.get("start")}T00:00:00Z`);
    const to = Date.parse(`${url.searchParams.get("end")}T23:59:59Z`);
    const days: Record<string, { start: string }[]> = {};
    for (const at of open) {
      if (at < from || at > to) continue;
      const iso = new Date(at).toISOString();
      (days[iso.slice(0, 10)] ??= []).push({ start: iso });
    }
    done(response, 200, days);
  };
  const book = (body: Record<string, unknown>, response: ServerResponse): void => {
    asked.push(body);
    const odd = Object.keys(body).find((name) => !BODY_MEMBERS.has(name));
    if (odd) return fail(response, 400, "BadRequestException", `property ${odd} should not exist`);
    if (!knowsEvent(new Map(Object.entries(body)))) {
      return fail(response, 404, "NotFoundException", "Event type not found");
    }
    const attendee = body.attendee as Record<string, unknown> | undefined;
    if (typeof attendee?.name !== "string" || typeof attendee.timeZone !== "string") {
      return fail(response, 400, "BadRequestException", "attendee must have name and timeZone");
    }
    if (!String(attendee.email ?? "").includes("@")) {
      return fail(response, 400, "BadRequestException", "email_validation_error");
    }
    const at = /Z$/.test(String(body.start)) ? Date.parse(String(body.start)) : NaN;
    if (!open.delete(at)) {
      return fail(response, 400, "BadRequestException",
        "User either already has booking at this time or is not available");
    }
    done(response, 201, {
      id: asked.length, uid: `uid-${asked.length}`, title: "Intro", status: "accepted",
      start: new Date(at).toISOString(), end: new Date(at + 1_800_000).toISOString(), duration: 30,
      attendees: [attendee], bookingFieldsResponses: body.bookingFieldsResponses ?? {},
    });
  };
  const answer = (request: IncomingMessage, body: string, response: ServerResponse): void => {
    const url = new URL(request.url ?? "", "http://cal");
    paths.push(url.pathname + url.search);
    if (request.headers.authorization !== `Bearer ${KEY}`) {
      return fail(response, 401, "UnauthorizedException", "Invalid API Key");
    }
    const route = `${request.method} ${url.pathname} ${String(request.headers["cal-api-version"])}`;
    if (/^GET \/v2\/me /.test(route)) {
      return done(response, 200, { id: 7, username: USERNAME, email: "bob@example.com", timeZone: "UTC" });
    }
    if (route === "GET /v2/slots 2024-09-04") return slots(url, response);
    if (route === "POST /v2/bookings 2024-08-13") {
      return book(JSON.parse(body) as Record<string, unknown>, response);
    }
    fail(response, 404, "NotFoundException", `Cannot ${route}`);
  };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => answer(request, body, response));
  });
  const { url, close } = await listenLocally(server);
  return {
    url,
    key: KEY, asked, paths,
    close,
  };
}
