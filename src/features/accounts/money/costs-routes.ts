// The wire of what an account's money was spent on.
import { Type, type Static } from "@sinclair/typebox";
import { dayAfter, daysBetween, isDay } from "#core/days.ts";
import { fieldFault } from "#core/faults.ts";
import { dollarsFromMicros } from "#core/money.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import type { System } from "#core/system.ts";
import { dayAt } from "#core/zones.ts";
import { json } from "#http/exchange.ts";
import { dayQuery, dayRange, RangeDay } from "#http/pagination.ts";
import { keyRoute, type Route } from "#http/route.ts";
import {
  COST_GROUPS, COST_GROUPS_MAX, type CostDay, type CostGroupFound, type Costs,
} from "./costs.ts";

const DAYS_DEFAULT = 30;
const DAYS_MAX = 366;

const CostsQuery = Type.Object({
  date_from: Type.Optional(RangeDay("The first day. Defaults to 29 days before the last.")),
  date_to: Type.Optional(RangeDay("The last day. Defaults to today.")),
  timezone: dayQuery.timezone,
  group_by: Type.Optional(OneOf(COST_GROUPS, {
    default: "assistant", ...about("What to group the costs by."),
  })),
});

const GroupSchema = Type.Object({
  id: Nullable(Type.String(about(
    "An assistant's uuid, a campaign's or model's id, a channel, a kind or a day; null for costs "
    + "of no group, or for the rest.",
    "9b2f6c1e-5d0a-4c1b-8f0e-2a7d3c4b5e6f"))),
  name: Nullable(Type.String(about(
    "Its name; null if the id says it or the name is no longer known.", "Front desk"))),
  rest: Type.Boolean(about(
    `Whether this sums all groups beyond the ${COST_GROUPS_MAX} most expensive.`)),
  total: Type.Number(about("USD in the whole range.", 2.52)),
  entries: Type.Integer(about("The number of ledger entries it sums.", 252)),
  by_day: Type.Array(Type.Number(), about("USD of each day in `days`.", [0.12, 2.4])),
}, named("CostGroup", "The cost of one assistant, campaign, model, channel, kind or day."));
const CostsSchema = Type.Object({
  currency: Type.Literal("USD", about("The currency of all amounts.")),
  timezone: Type.String(about("The time zone in which days are counted.", "UTC")),
  date_from: Type.String(about("The first day.", "2026-03-01")),
  date_to: Type.String(about("The last day.", "2026-03-02")),
  group_by: Type.String(about("What to group the costs by.", "assistant")),
  complete: Type.Boolean(about(
    "False while older entries are still being counted, for example after an update; try again "
    + "soon.")),
  total: Type.Number(about("USD spent in the range.", 2.52)),
  days: Type.Array(Type.String(), about("Every day of the range, oldest first.", ["2026-03-01"])),
  groups: Type.Array(GroupSchema, about("Groups, most expensive first; days in order.")),
});

/** Days of the range, by the zone's calendar; without a range, the last thirty. */
function daysOf(query: Static<typeof CostsQuery>, timezone: string, system: System): CostDay[] {
  const today = dayAt(system.now(), timezone);
  // Refuses dates that do not exist.
  dayRange({ ...query, timezone });
  const { date_from: asked = "" } = query;
  const last = query.date_to ?? (asked > today ? asked : today);
  if (!isDay(last)) throw fieldFault("date_to", "The date to is not a valid date.");
  const first = query.date_from ?? dayAfter(last, 1 - DAYS_DEFAULT);
  const count = daysBetween(first, last) + 1;
  if (count < 1) throw fieldFault("date_to", "The date to must not be before the date from.");
  if (count > DAYS_MAX) {
    throw fieldFault("date_from", `The range may not be longer than ${DAYS_MAX} days.`);
  }
  return Array.from({ length: count }, (_, at) => {
    const date = dayAfter(first, at);
    const { from = 0, to = 0 } = dayRange({ date_from: date, date_to: date, timezone });
    return { date, from, to };
  });
}

const wireGroup = ({ isRest, micros, byDay, ...group }: CostGroupFound) => ({
  id: group.id, name: group.name, rest: isRest, total: dollarsFromMicros(micros),
  entries: group.entries, by_day: byDay.map(dollarsFromMicros),
});

interface CostRouteOptions {
  costs: Costs;
  /** Where the account's days are counted. */
  zoneOf(accountId: number): Promise<string>;
  system: System;
}

export function costRoutes({ costs, zoneOf, system }: CostRouteOptions): Route[] {
  return [keyRoute({
    method: "GET",
    path: "/user/costs",
    tag: "Account",
    summary: "Get costs by group",
    description: "Returns spend by assistant, campaign, model, channel, kind or day over at most "
      + `${DAYS_MAX} days (default: the last ${DAYS_DEFAULT}). The model is the one the assistant `
      + "used when the cost was counted, accurate to a minute.",
    errorShape: "message",
    query: CostsQuery,
    responses: { 200: { description: "The costs", schema: CostsSchema } },
    handle: async ({ caller, query }) => {
      const { group_by: by = "assistant" } = query;
      const timezone = query.timezone ?? await zoneOf(caller.accountId);
      const days = daysOf(query, timezone, system);
      const { isComplete, groups } = await costs.report(caller.accountId, days, by);
      return json(200, {
        currency: "USD",
        timezone,
        date_from: days[0]?.date ?? "",
        date_to: days.at(-1)?.date ?? "",
        group_by: by,
        complete: isComplete,
        total: dollarsFromMicros(groups.reduce((sum, { micros }) => sum + micros, 0)),
        days: days.map(({ date }) => date),
        groups: groups.map(wireGroup),
      });
    },
  })];
}
