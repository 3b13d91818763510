// The wire of a campaign's results: figures, who is being called, when it will be finished; and the
// route that has failed leads called once more. Called by routes.ts.
import { Type, type Static } from "@sinclair/typebox";
import { dollarsFromMicros } from "#core/money.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { isoMicros, isoOrNull } from "#core/system.ts";
import { dataOf, IdOf, listOf, Moment, savedOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { FAILED_OUTCOMES, LEAD_OUTCOMES } from "#features/leads/leads.ts";
import type { Campaigns } from "./campaigns.ts";
import { endOf, paceOf, periodsOf, WIDTHS, type CallFigures, type Pause } from "./figures.ts";

const Count = (description: string, example: number) => Type.Integer(about(description, example));
const FIGURES = {
  calls: Count("Calls that have ended.", 120),
  answered: Count("Ended calls answered by a person.", 64),
  voicemail: Count("Calls a machine answered.", 20),
  goals: Count("Calls with a person that reached the campaign's goal.", 9),
  busy: Count("Calls to a busy number.", 6),
  no_answer: Count("Calls nobody answered.", 25),
  failed: Count("Calls that failed.", 5),
  talk_seconds: Count("Total seconds from answer to end.", 5400),
  cost: Type.Number(about("Total cost in USD, including the carrier's charges.", 12.4)),
};
const Share = (description: string) => Nullable(Type.Number(about(description, 0.53)));
const PeriodSchema = Type.Object({
  start: Moment("When it begins, in UTC."), ...FIGURES,
}, named("CampaignPeriod", "A campaign's calls in an hour or a day."));
const CalledSchema = Type.Object({
  lead_id: Type.Integer(about("The lead.", 7)),
  main_lead_id: Nullable(Type.Integer(about(
    "The lead this is another number of; null if it is the lead's main number.", 6))),
  phone_number: Type.String(about("The number to call, in E.164.", "+4915112345678")),
  variables: Type.Record(Type.String(), Type.String(), about(
    "The lead's variables.", { first_name: "Ada" })),
  call_id: Type.Integer(about("The call.", 12)),
  status: Type.String(about("The call's status.", "ringing")),
  since: Moment("When the call began, in UTC."),
  answered_at: Nullable(Moment("When it was answered; null if not yet.")),
}, named("CampaignCalled", "A lead being called."));
const OutcomeText = Nullable(Type.String(about(
  `How the last call ended: ${LEAD_OUTCOMES.join(", ")}; null: none is over.`, "no_answer")));
const FiguresSchema = dataOf(Type.Object({
  totals: Type.Object(FIGURES, about("All its calls.")),
  answer_rate: Share("Share of ended calls answered by a person; null if no call has ended."),
  voicemail_rate: Share("Share of ended calls answered by a machine; null if no call has ended."),
  goal_rate: Share("Share of calls answered by a person that reached the goal; null if none, or no "
    + "goal is set."),
  calls_per_hour: Nullable(Type.Number(about(
    "Calls per hour in the last hour it ran; null if none.", 42))),
  estimated_end: Nullable(Moment(
    "Estimated time all leads are done, at this pace and within its hours; null if not known.")),
  leads_due: Count("Leads in the queue that are due.", 300),
  leads: Type.Array(Type.Object({
    status: Type.String(about("The state.", "reached-max-retries")),
    last_outcome: OutcomeText,
    leads: Count("The number of leads.", 17),
  }), about("Leads by state and by how their last call ended, not counting secondary numbers.")),
  calling: listOf(CalledSchema, "Leads being called, earliest first."),
  periods: listOf(PeriodSchema, "Figures by hour or day, from the first call in range; oldest "
    + "first."),
}, named("CampaignFigures", "A campaign's figures.")));

const wireFigures = (figures: CallFigures) => ({
  calls: figures.calls,
  answered: figures.answered,
  voicemail: figures.voicemail,
  goals: figures.goals,
  busy: figures.busy,
  no_answer: figures.noAnswer,
  failed: figures.failed,
  talk_seconds: figures.talkSeconds,
  cost: dollarsFromMicros(figures.costMicros),
});

const share = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);

export const PauseSchema = Nullable(Type.Object({
  reason: Type.String(about(
    "`requested`, `balance_too_low`, `assistant_unavailable`: it was stopped. `carrier_failures`, "
    + "`hours`: it resumes by itself.",
    "requested")),
  until: Nullable(Moment("When it resumes by itself; null if somebody has to start it.")),
  since: Nullable(Moment("When it was stopped; null if not known.")),
  by: Nullable(Type.String(about("Who stopped it; null if nobody did.", "Ana"))),
  note: Nullable(Type.String(about("The reason given; null if none.", "Wrong list"))),
}, named("CampaignPause", "Why a campaign is not calling.")), about(
  "Why it is not calling; null if it may call, was never started, or has completed."));

export const wirePause = (pause: Pause | null): Static<typeof PauseSchema> => pause && {
  reason: pause.reason,
  until: isoOrNull(pause.until),
  since: isoOrNull(pause.since),
  by: pause.by,
  note: pause.note,
};

const COMMON = {
  tag: "Campaigns", errorShape: "message", notFound: "Campaign not found",
  params: { id: IdOf("campaign", "GET /user/campaigns") },
} as const;
const missing = { 404: { description: "No such campaign" } };

export function figureRoutes(campaigns: Campaigns): Route[] {
  return [figuresRoute(campaigns), retryRoute(campaigns)];
}

function figuresRoute(campaigns: Campaigns): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/campaigns/{id}/figures",
    summary: "Read a campaign's figures: rates, cost, pace and current calls",
    query: Type.Object({
      by: Type.Optional(OneOf(["hour", "day"], {
        default: "hour",
        ...about("The unit of `periods`: hours of the last two days, or days of the last thirty."),
      })),
    }),
    responses: { 200: { description: "The figures", schema: FiguresSchema }, ...missing },
    handle: async ({ caller, id, query: { by = "hour" } }) => {
      const { campaign, figures, now } = await campaigns.figures(
        caller.accountId, id, WIDTHS[by].days);
      const { totals, states, slots } = figures;
      const pace = paceOf(campaign, slots, now);
      const end = endOf(campaign, figures, pace, now);
      const hasGoal = campaign.goalVariable !== null;
      return json(200, { data: {
        totals: wireFigures(totals),
        answer_rate: share(totals.answered, totals.calls),
        voicemail_rate: share(totals.voicemail, totals.calls),
        goal_rate: hasGoal ? share(totals.goals, totals.answered) : null,
        calls_per_hour: pace,
        estimated_end: isoOrNull(end),
        leads_due: figures.due,
        leads: states.map(({ status, outcome, leads }) =>
          ({ status, last_outcome: outcome, leads })),
        calling: figures.calling.map((one) => ({
          lead_id: one.leadId, main_lead_id: one.mainId, phone_number: one.phoneNumber,
          variables: one.variables, call_id: one.callId, status: one.status,
          since: isoMicros(one.since),
          answered_at: isoOrNull(one.answeredAt),
        })),
        periods: periodsOf(campaign, slots, by, now).map(({ start, figures: own }) =>
          ({ start: isoMicros(start), ...wireFigures(own) })),
      } });
    },
  });
}

function retryRoute(campaigns: Campaigns): Route {
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/campaigns/{id}/retry",
    summary: "Retry leads, by how their last call ended",
    description: "Puts finished leads whose last call ended this way back in the queue for one "
      + "more call each. Skips blocked numbers and people reached at another number. Repeating "
      + "the request does not call anybody twice.",
    body: Type.Object({
      outcomes: Type.Array(
        OneOf(FAILED_OUTCOMES), {
          minItems: 1, maxItems: FAILED_OUTCOMES.length,
          ...about("How the last call ended.", ["no_answer", "busy"]),
        }),
    }),
    responses: {
      200: {
        description: "Done",
        schema: savedOf(Type.Object(
          { retried: Count("The number of leads put back in the queue.", 17) },
          about("What was done."))),
      },
      ...missing,
    },
    handle: async ({ caller, id, body: { outcomes } }) => {
      const retried = await campaigns.retry(caller.accountId, id, outcomes);
      const message = retried === 1
        ? "1 lead is called once more."
        : `${retried} leads are called once more.`;
      return json(200, { message, data: { retried } });
    },
  });
}
