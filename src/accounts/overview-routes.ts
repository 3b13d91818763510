// The wire of the overview: what a dashboard shows first, in one answer to go on from with the
// account's stream.
import { Type, type Static } from "@sinclair/typebox";
import { Fault } from "../core/faults.ts";
import { dollarsFromMicros } from "../core/money.ts";
import { Nullable } from "../core/schema.ts";
import { isoMicros } from "../core/system.ts";
import { json } from "../http/exchange.ts";
import { keyRoute, type Route } from "../http/route.ts";
import {
  LATENCY_CALLS_MAX, LATENCY_CONVERSATIONS_MAX, type CallLatency, type Day, type Overview,
  type ReadOverview, type ReplyLatency, type Spend,
} from "./overview.ts";

const DAYS_DEFAULT = 30;
const DAYS_MAX = 90;

const Percentiles = Nullable(Type.Object({ p50: Type.Integer(), p95: Type.Integer() }));
const day = { date: Type.String({ description: "UTC" }) };
const SPEND = {
  messages: Type.Number(), calls: Type.Number(), numbers: Type.Number(), other: Type.Number(),
};
const CALL_LATENCY = {
  turns: Type.Integer(),
  endpoint_ms: Percentiles,
  final_transcript_ms: Percentiles,
  first_token_ms: Percentiles,
  first_audio_ms: Percentiles,
  heard_ms: Percentiles,
};
const REPLY_LATENCY = { replies: Type.Integer(), reply_ms: Percentiles };

const OverviewSchema = Type.Object({
  id: Type.Integer({ description: "Goes on with /user/stream?after=" }),
  as_of: Type.String(),
  currency: Type.Literal("USD"),
  balance: Type.Number(),
  reserved: Type.Number(),
  spend: Type.Object({
    total: Type.Number(), by_day: Type.Array(Type.Object({ ...day, ...SPEND })),
  }),
  conversations: Type.Object({
    by_day: Type.Array(Type.Object({
      ...day,
      conversations: Type.Integer(),
      messages: Type.Integer({ description: "All those of the conversations begun on the day" }),
    })),
  }),
  calls: Type.Object({
    live: Type.Integer({ description: "Now, whenever they began" }),
    by_day: Type.Array(Type.Object({
      ...day, calls: Type.Integer(), answered: Type.Integer(), minutes: Type.Number(),
    })),
    by_status: Type.Array(Type.Object({ status: Type.String(), calls: Type.Integer() })),
  }),
  latency: Type.Object({
    ...CALL_LATENCY,
    by_day: Type.Array(Type.Object({ ...day, ...CALL_LATENCY })),
    messages: Type.Object({
      ...REPLY_LATENCY, by_day: Type.Array(Type.Object({ ...day, ...REPLY_LATENCY })),
    }, {
      description: "From a message to its whole reply, in the newest "
        + `${LATENCY_CONVERSATIONS_MAX} conversations; days are those they began on`,
    }),
  }, {
    description: "Milliseconds since the caller stopped speaking, to the nearest rank, in the "
      + `newest ${LATENCY_CALLS_MAX} answered calls`,
  }),
});

const wireSpend = (spend: Spend) => ({
  messages: dollarsFromMicros(spend.messages),
  calls: dollarsFromMicros(spend.calls),
  numbers: dollarsFromMicros(spend.numbers),
  other: dollarsFromMicros(spend.other),
});

const wireCallLatency = ({ turns, stages }: CallLatency) => ({
  turns,
  endpoint_ms: stages.endpointMs,
  final_transcript_ms: stages.finalTranscriptMs,
  first_token_ms: stages.firstTokenMs,
  first_audio_ms: stages.firstAudioMs,
  heard_ms: stages.heardMs,
});

const wireReplyLatency = ({ replies, replyMs }: ReplyLatency) => ({ replies, reply_ms: replyMs });

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

function callsOfDay({ date, calls }: Day) {
  const seconds = sum(calls.map((row) => row.seconds));
  return {
    date,
    calls: sum(calls.map((row) => row.calls)),
    answered: sum(calls.map((row) => row.answered)),
    minutes: Math.round((seconds * 100) / 60) / 100,
  };
}

/** The commonest first. */
function byStatus(days: Day[]): { status: string; calls: number }[] {
  const counts = new Map<string, number>();
  for (const { status, calls } of days.flatMap((row) => row.calls)) {
    counts.set(status, (counts.get(status) ?? 0) + calls);
  }
  return [...counts]
    .map(([status, calls]) => ({ status, calls }))
    .sort((a, b) => b.calls - a.calls || a.status.localeCompare(b.status));
}

function wireOverview(overview: Overview): Static<typeof OverviewSchema> {
  const { days } = overview;
  const spent = sum(days.flatMap(({ spend }) => Object.values(spend) as number[]));
  return {
    id: overview.sequence,
    as_of: isoMicros(overview.asOf),
    currency: "USD",
    balance: dollarsFromMicros(overview.balanceMicros),
    reserved: dollarsFromMicros(overview.reservedMicros),
    spend: {
      total: dollarsFromMicros(spent),
      by_day: days.map(({ date, spend }) => ({ date, ...wireSpend(spend) })),
    },
    conversations: {
      by_day: days.map(({ date, conversations, messages }) => ({ date, conversations, messages })),
    },
    calls: {
      live: overview.liveCalls, by_day: days.map(callsOfDay), by_status: byStatus(days),
    },
    latency: {
      ...wireCallLatency(overview.callLatency),
      by_day: days.map(({ date, callLatency }) => ({ date, ...wireCallLatency(callLatency) })),
      messages: {
        ...wireReplyLatency(overview.replyLatency),
        by_day: days.map(({ date, replyLatency }) => ({ date, ...wireReplyLatency(replyLatency) })),
      },
    },
  };
}

export function overviewRoutes(read: ReadOverview): Route[] {
  return [keyRoute({
    method: "GET",
    path: "/user/overview",
    tag: "Account",
    summary: "Balance, spend, conversations, calls and latency of the last days",
    errorShape: "message",
    query: Type.Object({
      days: Type.Optional(Type.Integer({ minimum: 1, maximum: DAYS_MAX, default: DAYS_DEFAULT })),
    }),
    responses: {
      200: { description: "The overview; every day of the range, oldest first", schema: OverviewSchema },
    },
    handle: async ({ caller, query }) => {
      const overview = await read(caller.accountId, query.days ?? DAYS_DEFAULT);
      if (!overview) throw new Fault(404, "Account not found.");
      return json(200, wireOverview(overview));
    },
  })];
}
