// Charts of the selected days: money, conversations, calls, and how quickly people were answered.
import { Chart } from "#ui/dashboard/kit/chart.tsx";
import { count, decimal, money, percent } from "#ui/dashboard/kit/format.ts";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import type { OverviewData } from "./overview.tsx";
import { labelsOf, opening, type Range } from "./range.ts";
import { plural, t } from "#ui/dashboard/kit/texts.ts";
import { shownZone } from "#ui/dashboard/kit/zone.ts";

const seconds = (ms: number): string =>
  ms < 1000 ? `${count(ms)} ms` : `${decimal(ms / 1000, ms < 10_000 ? 2 : 1)} s`;

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

interface ChartsProps {
  overview: OverviewData;
  range: Range;
  /** The period before; null: nothing is compared. */
  before: OverviewData | null;
}

type Part<T> = T & { range: Range; labels: string[]; before: T | null };

export function Charts({ overview, range, before }: ChartsProps) {
  const shared = {
    range, labels: labelsOf(overview.calls.by_day, range.by, shownZone()),
  };
  return (
    <div class="grid two overview-charts">
      <Card><Spend {...shared} {...overview.spend} before={before && before.spend} /></Card>
      <Card><Calls {...shared} {...overview.calls} before={before && before.calls} /></Card>
      <Card>
        <Conversations
          {...shared} {...overview.conversations} before={before && before.conversations}
        />
      </Card>
      <Card>
        <ReplyTimes {...shared} {...overview.latency} before={before && before.latency} />
      </Card>
      <Card class="overview-wide">
        <CallTimes {...shared} {...overview.latency} before={before && before.latency} />
      </Card>
    </div>
  );
}

/** The period before, and the change of the sum since, in percent. */
function changed(now: number[], then: number[] | undefined, format: (value: number) => string) {
  if (!then) return null;
  const [is, was] = [sum(now), sum(then)];
  const more = was === 0 ? null : Math.round(((is - was) / was) * 100) / 100;
  const delta = more === null ? "" : ` (${more > 0 ? "+" : ""}${percent(more)})`;
  return { values: then, total: `${format(was)}${delta}` };
}

const halfOf = (figures: Figures): number | null => figures?.p50 ?? null;

const KINDS = [
  { name: "Messages", kind: "messages", colour: 1 },
  { name: "Calls", kind: "calls", colour: 2 },
  { name: "Numbers", kind: "numbers", colour: 3 },
  { name: "Other", kind: "other", colour: 4 },
] as const;

/** Kinds without any cost are left out. */
function Spend({ by_day: days, labels, before }: Part<OverviewData["spend"]>) {
  const all = (rows: typeof days) => rows.map((row) => sum(KINDS.map(({ kind }) => row[kind])));
  const series = KINDS.map(({ name, kind, colour }) =>
    ({ name, colour, values: days.map((row) => row[kind]) }));
  const used = series.filter(({ values }) => values.some((value) => value !== 0));
  return (
    <Chart
      title="Spend" kind="bars" labels={labels} format={money}
      before={changed(all(days), before ? all(before.by_day) : undefined, money)}
      totals={Object.fromEntries(used.map(({ name, values }) => [name, money(sum(values))]))}
      series={used} empty="Nothing was billed in these days."
    />
  );
}

function Calls({ by_day: days, range, labels, before }: Part<OverviewData["calls"]>) {
  const answered = days.map((row) => row.answered);
  const missed = days.map((row) => row.calls - row.answered);
  return (
    <Chart
      onOpen={opening("/calls", days, range)}
      title="Calls" kind="bars" labels={labels} format={count} isWhole
      before={changed(
        days.map((row) => row.calls), before?.by_day.map((row) => row.calls), count)}
      totals={{ [t("Answered")]: count(sum(answered)), [t("Not answered")]: count(sum(missed)) }}
      series={[
        { name: "Answered", colour: 2, values: answered },
        { name: "Not answered", colour: 3, values: missed },
      ]}
      empty="No calls in these days."
    />
  );
}

function Conversations(
  { by_day: days, range, labels, before }: Part<OverviewData["conversations"]>,
) {
  const conversations = days.map((row) => row.conversations);
  const messages = days.map((row) => row.messages);
  return (
    <Chart
      onOpen={opening("/conversations", days, range)}
      title="Conversations" kind="lines" labels={labels} format={count} isWhole
      before={changed(
        conversations, before?.by_day.map((row) => row.conversations), count)}
      totals={{
        [t("Conversations")]: count(sum(conversations)), [t("Messages")]: count(sum(messages)),
      }}
      series={[
        { name: "Conversations", colour: 1, values: conversations },
        { name: "Messages", colour: 4, values: messages },
      ]}
      empty="No conversations in these days."
    />
  );
}

type Figures = { p50: number; p95: number } | null;

const percentiles = (days: Figures[]) => [
  { name: "Half within", colour: 1 as const, values: days.map((figures) => figures?.p50 ?? null) },
  { name: t("95% within"), colour: 3 as const, values: days.map((figures) => figures?.p95 ?? null) },
];

const totalsOf = (figures: Figures): Record<string, string> => figures
  ? { [t("Half within")]: seconds(figures.p50), [t("95% within")]: seconds(figures.p95) }
  : {};

const middleOf = (figures: Figures): string => figures ? seconds(figures.p50) : "–";

function ReplyTimes({ messages, range, labels, before }: Part<OverviewData["latency"]>) {
  const then = before?.messages;
  return (
    <Chart
      onOpen={opening("/conversations", messages.by_day, range)}
      title="Time to a text reply" kind="lines" labels={labels}
      before={then ? {
        values: then.by_day.map((row) => halfOf(row.reply_ms)),
        total: middleOf(then.reply_ms),
      } : null}
      format={seconds} totals={totalsOf(messages.reply_ms)}
      series={percentiles(messages.by_day.map((row) => row.reply_ms))}
      empty="No replies in these days."
    />
  );
}

const STAGES = [
  { name: "End of speech detected", stage: "endpoint_ms" },
  { name: "Words recognised", stage: "final_transcript_ms" },
  { name: "Model’s first word", stage: "first_token_ms" },
  { name: "Voice’s first audio", stage: "first_audio_ms" },
  { name: "Heard by the caller", stage: "heard_ms" },
] as const;

function CallTimes(latency: Part<OverviewData["latency"]>) {
  const { by_day: days, turns, range, labels, before } = latency;
  const known = STAGES.filter(({ stage }) => latency[stage] !== null);
  return (
    <div class="overview-latency">
      <Chart
        onOpen={opening("/calls", days, range)}
        title="Time to an answer in calls" kind="lines" labels={labels} format={seconds}
        before={before ? {
          values: before.by_day.map((row) => halfOf(row.heard_ms)),
          total: middleOf(before.heard_ms),
        } : null}
        totals={totalsOf(latency.heard_ms)} series={percentiles(days.map((row) => row.heard_ms))}
        empty="Nobody was answered on a call in these days."
      />
      {known.length > 0 && (
        <table class="figures overview-stages">
          <caption>
            {plural(turns,
              "Since the caller stopped speaking, in {count} answer",
              "Since the caller stopped speaking, in {count} answers")}
          </caption>
          <thead>
            <tr><th scope="col">Stage</th><th scope="col">Half</th><th scope="col">95%</th></tr>
          </thead>
          <tbody>
            {known.map(({ name, stage }) => (
              <tr key={stage}>
                <th scope="row">{name}</th>
                <td>{seconds(latency[stage]?.p50 ?? 0)}</td>
                <td>{seconds(latency[stage]?.p95 ?? 0)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
