// The wire of the overview: what a dashboard shows first, in one answer with the position from
// which to resume the account's stream.
import { Type, type Static } from "@sinclair/typebox";
import { dayAfter, daysBetween, isDay } from "#core/days.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { dollarsFromMicros } from "#core/money.ts";
import { about, named, OneOf } from "#core/schema.ts";
import { isoMicros, type Instant, type System } from "#core/system.ts";
import { dayAt } from "#core/zones.ts";
import { Moment } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { dayQuery, RangeDay } from "#http/pagination.ts";
import { keyRoute, type Route } from "#http/route.ts";
import type { Accounts } from "#features/accounts/accounts.ts";
import { StepsSchema, stepsItem } from "./first-day-routes.ts";
import type { FirstStepCases } from "./first-steps.ts";
import {
  LATENCY_CALLS_MAX, LATENCY_CONVERSATIONS_MAX, type CallLatency, type Day, type Overview,
  type ReadOverview, type ReplyLatency, type Spend,
} from "./overview.ts";
import { UNITS, type Asked } from "./range.ts";

const DAYS_DEFAULT = 30;
const DAYS_MAX = 90;
const RANGE_DAYS_MAX = 366;
const HOURS_DAYS_MAX = 14;

const Spread = Type.Object({
  p50: Type.Integer(about("The median, in milliseconds.", 640)),
  p95: Type.Integer(about("The 95th percentile, in milliseconds.", 1180)),
}, named("Spread", "How long something took, in milliseconds."));
const Percentiles = (what: string) =>
  Type.Union([Spread, Type.Null()], about(`${what}; null if there was none.`));
const day = { date: Type.String(about(
  "The day in `timezone`; a week's first day; or an hour, such as `2026-03-02T14:00`.",
  "2026-03-02")) };
const SPEND = {
  messages: Type.Number(about("USD for replies in text.", 0.12)),
  calls: Type.Number(about("USD for calls.", 1.4)),
  numbers: Type.Number(about("USD for phone numbers.", 1)),
  other: Type.Number(about("USD for everything else.", 0)),
};
const CALL_LATENCY = {
  turns: Type.Integer(about("The number of call replies measured.", 42)),
  endpoint_ms: Percentiles("Until the end of the turn was detected"),
  final_transcript_ms: Percentiles("Until the transcript was final"),
  first_token_ms: Percentiles("Until the model's first token"),
  first_audio_ms: Percentiles("Until the first synthesised audio"),
  heard_ms: Percentiles("Until the caller heard the reply"),
};
const REPLY_LATENCY = {
  replies: Type.Integer(about("The number of text replies measured.", 120)),
  reply_ms: Percentiles("From a message to its complete reply"),
};
const byDay = (what: string) => about(`${what}, for every \`by\` unit (day, hour or week) of the range, oldest first.`);

const OverviewSchema = Type.Object({
  id: Type.Integer(about("Stream position. Continue with `/user/stream?after=<position>`.", 42)),
  as_of: Moment("When the figures were taken, in UTC."),
  currency: Type.Literal("USD", about("The currency of all amounts.")),
  first_steps: StepsSchema,
  balance: Type.Number(about("The balance.", 4.88)),
  reserved: Type.Number(about("The part reserved for running replies and calls.", 0)),
  spend: Type.Object({
    total: Type.Number(about("Total spent in the range.", 2.52)),
    by_day: Type.Array(Type.Object({ ...day, ...SPEND }), byDay("What was spent")),
  }, about("Money spent.")),
  conversations: Type.Object({
    by_day: Type.Array(Type.Object({
      ...day,
      conversations: Type.Integer(about("Conversations started on the day.", 12)),
      messages: Type.Integer(about("Messages in the conversations started on the day.", 96)),
    }), byDay("Conversations")),
  }, about("Conversations in text.")),
  calls: Type.Object({
    live: Type.Integer(about("Calls in progress now, whenever they started.", 1)),
    by_day: Type.Array(Type.Object({
      ...day,
      calls: Type.Integer(about("Calls started on the day.", 8)),
      answered: Type.Integer(about("Calls that were answered.", 6)),
      minutes: Type.Number(about("Their total duration.", 14.5)),
    }), byDay("Calls")),
    by_status: Type.Array(Type.Object({
      status: Type.String(about("The status the calls ended with.", "completed")),
      calls: Type.Integer(about("The number of calls.", 6)),
    }), about("How the calls in the range ended, most common first.")),
  }, about("Calls.")),
  latency: Type.Object({
    ...CALL_LATENCY,
    by_day: Type.Array(Type.Object({ ...day, ...CALL_LATENCY }), byDay("Latency of calls")),
    messages: Type.Object({
      ...REPLY_LATENCY,
      by_day: Type.Array(Type.Object({ ...day, ...REPLY_LATENCY }), byDay("Latency of replies")),
    }, {
      description: "From a message to its complete reply, over the newest "
        + `${LATENCY_CONVERSATIONS_MAX} conversations, by the day they started`,
    }),
  }, {
    description: "Milliseconds since the caller stopped speaking, as nearest-rank percentiles over "
      + `the newest ${LATENCY_CALLS_MAX} answered calls`,
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

function wireOverview(
  overview: Overview,
): Omit<Static<typeof OverviewSchema>, "first_steps"> {
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

const Query = Type.Object({
  days: Type.Optional(Type.Integer({
    minimum: 1, maximum: DAYS_MAX, default: DAYS_DEFAULT,
    ...about("How many days to look back, today included; not used with `date_from`."),
  })),
  date_from: Type.Optional(RangeDay("The first day.")),
  date_to: Type.Optional(RangeDay("The last day. Defaults to today.")),
  by: Type.Optional(OneOf(UNITS, {
    default: "day",
    ...about(`The unit of the charts. Hours cover at most ${HOURS_DAYS_MAX} days; days and weeks `
      + `at most ${RANGE_DAYS_MAX} days. Weeks start on Monday.`),
  })),
  assistant_id: Type.Optional(Type.Integer(about(
    "Only this assistant's conversations and calls, and their cost.", 12))),
  timezone: dayQuery.timezone,
});

/** Throws Fault 422 for an invalid or too long range. */
function askedOf(query: Static<typeof Query>, timeZone: string, now: Instant): Asked {
  const { by = "day", days = DAYS_DEFAULT, assistant_id: assistantId = null } = query;
  const to = query.date_to ?? dayAt(now, timeZone);
  if (!isDay(to)) throw fieldFault("date_to", "The date to is not a valid date.");
  const from = query.date_from ?? dayAfter(to, 1 - days);
  if (!isDay(from)) throw fieldFault("date_from", "The date from is not a valid date.");
  const length = daysBetween(from, to) + 1;
  if (length < 1) throw fieldFault("date_from", "The date from may not be after the date to.");
  const most = by === "hour" ? HOURS_DAYS_MAX : RANGE_DAYS_MAX;
  if (length > most) throw fieldFault("date_from", `By ${by}, a range has at most ${most} days.`);
  return { from, to, by, timeZone, assistantId };
}

interface OverviewRouteOptions {
  overview: ReadOverview;
  firstSteps: Pick<FirstStepCases, "read">;
  accounts: Pick<Accounts, "zoneOf">;
  system: Pick<System, "now">;
}

export function overviewRoutes(options: OverviewRouteOptions): Route[] {
  const { overview: read, firstSteps, accounts, system } = options;
  return [keyRoute({
    method: "GET",
    path: "/user/overview",
    tag: "Account",
    summary: "Get an overview of the account",
    description: "Returns the balance, and spend, conversations, calls and latency over a range of "
      + "days.",
    errorShape: "message",
    query: Query,
    responses: {
      200: { description: "The overview, with every day of the range, oldest first",
        schema: OverviewSchema },
    },
    handle: async ({ caller: { accountId }, query }) => {
      const timeZone = query.timezone ?? await accounts.zoneOf(accountId);
      const overview = await read(accountId, askedOf(query, timeZone, system.now()));
      if (!overview) throw new Fault(404, "Account not found.");
      return json(200, {
        ...wireOverview(overview),
        first_steps: stepsItem(await firstSteps.read(accountId)),
      });
    },
  })];
}
