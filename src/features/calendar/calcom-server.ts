// Sends one assistant's requests to a Cal.com server (API v2), on the threads that call tools'
// endpoints, because an assistant's owner may name the server. Classifies the answer and turns a
// failure into a sentence that a model can act on. Called by calcom.ts.
import { hash } from "node:crypto";
import type { CalendarIntegration } from "#features/assistants/calcom-keys.ts";
import type { Logger } from "#core/logger.ts";
import { LIMITS } from "#core/limits.ts";
import { jsonOf, recordOf } from "#core/values.ts";
import type { SendToEndpoint } from "#features/tools/invocation.ts";
import { CHECK_AVAILABILITY } from "./functions.ts";

/** The format of a route's answer depends on the version that the request names. */
export const SLOTS_VERSION = "2024-09-04";
export const BOOKINGS_VERSION = "2024-08-13";
const EU_URL = "https://api.cal.eu";
const USERS_KEPT_MAX = 1000;
const REASON_CHARS_MAX = 200;

type Result = Record<string, unknown>;

/** One assistant's Cal.com calendar: its server, its API key and the assistant's time zone. */
export interface Desk {
  url: string;
  key: string;
  accountId: number;
  tool: CalendarIntegration;
  zone: string;
}

type Answer =
  | { kind: "done"; data: unknown }
  | { kind: "refused"; status: number; reason: string }
  /** `sent` false: it has certainly not arrived. */
  | { kind: "failed"; sent: boolean };

interface Asked {
  method: "GET" | "POST";
  path: string;
  version: string;
  body?: object;
  /** Sent as the header by which Cal.com recognises a repeated booking. */
  idempotencyKey?: string;
}

function reasonOf(body: string): string {
  const error = recordOf(recordOf(jsonOf(body))?.error);
  return String(error?.message ?? "").slice(0, REASON_CHARS_MAX);
}

export type Ask = (desk: Desk, asked: Asked) => Promise<Answer>;

export function createAsk({ send, log }: { send: SendToEndpoint; log: Logger }): Ask {
  return async ({ url, key, accountId }, asked) => {
    const reply = await send({
      accountId,
      url: `${url}/v2${asked.path}`,
      method: asked.method,
      headers: {
        authorization: `Bearer ${key}`,
        "cal-api-version": asked.version,
        ...(asked.body ? { "content-type": "application/json" } : {}),
        ...(asked.idempotencyKey ? { "idempotency-key": asked.idempotencyKey } : {}),
      },
      ...(asked.body ? { body: JSON.stringify(asked.body) } : {}),
      totalMs: LIMITS.calcomMs,
      bytesMax: LIMITS.toolResponseBytesMax,
      resultCharsMax: LIMITS.calcomAnswerCharsMax,
      // A trial's answer includes the body of a refusal, which gives the reason.
      isTrial: true,
    }).catch((error: unknown) => {
      log.error({ err: error }, "the tool thread failed");
      return { kind: "failed" as const, reason: "thread", sent: true };
    });
    if (reply.kind === "result") return { kind: "done", data: reply.result.data };
    const fields = { account_id: accountId, outcome: reply.kind, path: asked.path.split("?")[0] };
    if (reply.kind === "status") {
      const reason = reasonOf(reply.answered?.body ?? "");
      log.warn({ ...fields, status: reply.status, reason }, "Cal.com refused");
      return { kind: "refused", status: reply.status, reason };
    }
    log.warn({ ...fields, reason: reply.reason }, "could not reach Cal.com");
    return { kind: "failed", sent: reply.kind === "failed" && reply.sent };
  };
}

const TAKEN = /not available|already has booking|no longer available|slot/i;

/** The error a model receives; Cal.com's own words only where it can act on them. */
export function failureOf(answer: Exclude<Answer, { kind: "done" }>): Result {
  if (answer.kind === "failed") return { error: "The calendar could not be reached." };
  const { status, reason } = answer;
  if (status === 401 || status === 403) return { error: "The calendar does not accept its key." };
  if (status === 404) return { error: "The calendar does not know the event or its owner." };
  if (status === 409 || (status === 400 && TAKEN.test(reason))) {
    return { error: `That time is no longer free. Ask ${CHECK_AVAILABILITY} for others.` };
  }
  if (status === 400 || status === 422) {
    return { error: `The calendar refused it: ${reason || "something does not fit"}` };
  }
  return { error: "The calendar is not available right now." };
}

/** The event's owner as Cal.com names it: the team's slug, or the username the key belongs to. */
export function createOwnerOf(ask: Ask) {
  const names = new Map<string, string>();
  return async (desk: Desk): Promise<{ owner: Record<string, string> } | { error: Result }> => {
    const { calcom_team_slug: teamSlug } = desk.tool;
    if (teamSlug) return { owner: { teamSlug } };
    const who = hash("sha256", `${desk.url} ${desk.key}`, "base64");
    const known = names.get(who);
    if (known !== undefined) return { owner: { username: known } };
    const answer = await ask(desk, { method: "GET", path: "/me", version: BOOKINGS_VERSION });
    if (answer.kind !== "done") return { error: failureOf(answer) };
    const { username } = (answer.data ?? {}) as { username?: unknown };
    if (typeof username !== "string") {
      return { error: { error: "The calendar does not say whose it is." } };
    }
    if (names.size >= USERS_KEPT_MAX) names.clear();
    names.set(who, username);
    return { owner: { username } };
  };
}

/** The API's root without `/v2`, which the configured URL may or may not end in. */
export function urlOf(us: string, tool: CalendarIntegration): string {
  const given = tool.calcom_endpoint === "custom" ? tool.calcom_custom_endpoint ?? us
    : tool.calcom_endpoint === "eu" ? EU_URL : us;
  return given.replace(/\/+$/, "").replace(/\/v2$/, "");
}
