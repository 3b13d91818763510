// The common shape of routes through which an account watches something: SSE, by key or by ticket,
// resumed by `?after=` or `Last-Event-ID`. Called by the routes of accounts, of the audit log and
// of calls.
import { Type } from "@sinclair/typebox";
import { AFTER, EVENT_STREAM, LAST_EVENT_ID, TICKET } from "#http/answers.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import { readPosition, type StreamRequest, type Streams } from "./streams.ts";

type Watched = Pick<StreamRequest, "source" | "sessionsMax">;
type Description = Pick<Route, "path" | "tag" | "summary" | "notFound" | "params"> & { description: string };

export function sseRoute(
  description: Description, streams: Pick<Streams, "openSse">,
  watched: (asked: { caller: Caller; id: number; baseUrl: string }) => Watched | Promise<Watched>,
): Route {
  return keyRoute({
    ...description,
    method: "GET",
    acceptsTicket: true,
    errorShape: "message",
    query: Type.Object({ after: Type.Optional(AFTER), ticket: Type.Optional(TICKET) }),
    headers: { "Last-Event-ID": LAST_EVENT_ID },
    responses: {
      200: {
        description: "Server-sent events", schema: EVENT_STREAM, contentType: "text/event-stream",
      },
    },
    handle: async ({ query, http, ...asked }) => {
      const position = readPosition(query.after, http.headers["last-event-id"]);
      return streams.openSse({ ...await watched(asked), position });
    },
  });
}
