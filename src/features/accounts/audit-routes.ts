// The wire of the audit log: in pages, as a file, and as a live stream.
import { Type, type Static } from "@sinclair/typebox";
import { csvLine } from "#core/csv.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { LIMITS } from "#core/limits.ts";
import { isoMicros, nextTurn } from "#core/system.ts";
import { auditTopic, type CommittedEvent } from "#events/events.ts";
import { listOf, Moment } from "#http/answers.ts";
import { json, type ByteStream, type Reply } from "#http/exchange.ts";
import { dayQuery, dayRange } from "#http/pagination.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import { sseRoute } from "#realtime/sse-route.ts";
import type { Streams } from "#realtime/streams.ts";
import type { AuditEntry, AuditFilter, AuditLog } from "./audit.ts";

interface AuditRouteOptions {
  audit: AuditLog;
  streams: Streams;
  streamsMax: number;
  /** Whether the caller may still read it. */
  people: { mayAudit(caller: Caller): Promise<boolean> };
}

const PER_PAGE_DEFAULT = 50;
const TEXT_CHARS_MAX = 100;
const Text = (description: string, example: string) =>
  Type.Optional(Type.String({ maxLength: TEXT_CHARS_MAX, ...about(description, example) }));

const FILTER = {
  actor: Text("Only actions of this actor: `user:5`, `key:3` or `system`.", "user:5"),
  action: Text("Only this action. End it with a dot to match a prefix.", "assistant."),
  object: Text("Only actions on the object with this id or uuid.", "12"),
  ...dayQuery,
};
const QUERY = Type.Object({
  ...FILTER,
  format: Type.Optional(OneOf(["json", "csv", "jsonl"], about(
    "csv and jsonl (one entry per line) return all matching entries as a file.", "json"))),
  per_page: Type.Optional(Type.Integer({
    minimum: 1, maximum: LIMITS.pageSizeMax, default: PER_PAGE_DEFAULT, ...about("Rows per page."),
  })),
  before: Type.Optional(Type.Integer({
    minimum: 1, ...about("Only entries with a lower number: the `next_before` of the previous "
      + "page.",
      42),
  })),
});
const ENTRY = Type.Object({
  number: Type.Integer(about("The entry's number in the account: 1, 2, 3 … without gaps.", 17)),
  actor: Type.Object({
    kind: Type.String(about("The kind of actor: user, key or system.", "user")),
    id: Type.String(about("The actor's id.", "user:5")),
    name: Type.String(about("The name at that time.", "Ana")),
  }, about("Who did it.")),
  action: Type.String(about("What was done.", "assistant.update")),
  object: Nullable(Type.Object({
    type: Type.String(about("The kind of object.", "assistant")),
    id: Nullable(Type.String(about("The object's id; null if none in particular.", "12"))),
  }, about("The object acted on; null if none in particular."))),
  details: Type.Record(Type.String(), Type.Unknown(), about(
    "Details: the names of the `fields` sent and, for small records, the values `before` and "
    + "`after`.",
    { fields: ["name"], before: { name: "A" }, after: { name: "B" } })),
  ip: Nullable(Type.String(about("The IP address of the request; null for the command line.",
    "192.0.2.1"))),
  created_at: Moment("When it was done, in UTC."),
}, named("AuditEntry", "An action in the account."));

const entryItem = (entry: AuditEntry): Static<typeof ENTRY> => ({
  number: entry.number, actor: entry.actor, action: entry.action, object: entry.object,
  details: entry.details, ip: entry.address, created_at: isoMicros(entry.createdAt),
});

function filterOf({ actor, action, object, ...days }: {
  actor?: string; action?: string; object?: string; date_from?: string; date_to?: string;
  timezone?: string;
}): AuditFilter {
  return {
    ...actor === undefined ? {} : { actorId: actor }, ...action === undefined ? {} : { action },
    ...object === undefined ? {} : { objectId: object }, ...dayRange(days),
  };
}

export function auditRoutes(options: AuditRouteOptions): Route[] {
  return [listRoute(options), streamRoute(options)];
}

function listRoute({ audit }: AuditRouteOptions): Route {
  return keyRoute({
    method: "GET",
    path: "/user/audit",
    tag: "Members",
    summary: "List the audit log",
    description: "Lists who did what, newest first. Never contains passwords, keys or other "
      + "secrets.",
    errorShape: "message",
    query: QUERY,
    responses: {
      200: {
        description: "A page of entries, or all of them as a file",
        schema: Type.Object({
          data: listOf(ENTRY, "Newest first."),
          next_before: Nullable(Type.Integer(about(
            "Value for the next page; null on the last page.", 17))),
        }),
        otherContentType: ["text/csv", "application/x-ndjson"],
      },
    },
    handle: async ({ caller, query }) => {
      const filter = filterOf(query);
      const { format = "json", before = null, per_page: perPage = PER_PAGE_DEFAULT } = query;
      if (format !== "json") return fileOf(audit, caller.accountId, filter, format);
      const rows = await audit.page(caller.accountId, filter, before, perPage + 1);
      const page = rows.slice(0, perPage);
      return json(200, {
        data: page.map(entryItem),
        next_before: rows.length > perPage ? page.at(-1)?.number ?? null : null,
      });
    },
  });
}

const HEAD = "number,created_at,actor_kind,actor_id,actor_name,action,object_type,object_id,ip,details";

function entryLine(entry: AuditEntry): string {
  const { number, created_at: at, actor, action, object, ip, details } = entryItem(entry);
  return csvLine([
    number, at, actor.kind, actor.id, actor.name, action, object?.type, object?.id, ip, details,
  ]);
}

/** Respects backpressure, and yields to the event loop between two pages. */
function fileOf(
  audit: AuditLog, accountId: number, filter: AuditFilter, format: "csv" | "jsonl",
): Reply {
  const line = format === "csv"
    ? entryLine
    : (entry: AuditEntry): string => JSON.stringify(entryItem(entry));
  const write = async (stream: ByteStream): Promise<void> => {
    let before: number | null = null;
    let isOpen = true;
    let goOn = (): void => undefined;
    stream.onDrain(() => goOn());
    stream.onClose(() => {
      isOpen = false;
      goOn();
    });
    if (format === "csv") stream.write(`${HEAD}\n`);
    while (isOpen) {
      const rows: AuditEntry[] = await audit.page(accountId, filter, before, LIMITS.replayPageRows);
      before = rows.at(-1)?.number ?? null;
      const isTaken = stream.write(rows.map((row) => `${line(row)}\n`).join(""));
      if (rows.length < LIMITS.replayPageRows) return stream.end();
      await (isTaken ? nextTurn() : new Promise<void>((resolve) => (goOn = resolve)));
    }
  };
  return {
    status: 200,
    contentType: format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson; charset=utf-8",
    headers: {
      "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
      "Content-Disposition": `attachment; filename="audit.${format}"`,
    },
    stream: (stream) => void write(stream).catch(() => stream.abort()),
  };
}

const eventOf = (accountId: number, entry: AuditEntry): CommittedEvent => ({
  id: entry.number, accountId, accountSequence: entry.number, conversationId: null, callId: null,
  sequence: entry.number, type: "audit_added",
  json: JSON.stringify({ type: "audit_added", entry: entryItem(entry) }),
  createdAt: entry.createdAt,
});

function streamRoute({ audit, streams, streamsMax, people }: AuditRouteOptions): Route {
  return sseRoute({
    path: "/user/audit/stream",
    tag: "Members",
    summary: "Stream the audit log",
    description: "Sends an `audit_added` event per entry, with the entry's number as its id. "
      + "Resumes without gaps or repeats.",
  }, streams, ({ caller }) => {
    const { accountId } = caller;
    return {
      sessionsMax: streamsMax,
      source: {
        topic: auditTopic(accountId), accountId,
        newest: () => audit.newest(accountId),
        after: async (sequence, rows) =>
          (await audit.after(accountId, sequence, rows)).map((one) => eventOf(accountId, one)),
        sequenceOf: (event) => event.sequence,
        live: () => null,
        allowed: () => people.mayAudit(caller),
      },
    };
  });
}
