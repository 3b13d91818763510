// The days as charts: money, conversations, calls, and how quickly people were answered.
import { Chart } from "#ui/dashboard/kit/chart.tsx";
import { count, day, money, decimal } from "#ui/dashboard/kit/format.ts";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import { openNarrowed } from "#ui/dashboard/data/address.ts";
import type { OverviewData } from "./overview.tsx";
import { plural, t } from "#ui/dashboard/kit/texts.ts";

/** The API's days are UTC's: at noon they are the same day for nearly everybody. */
const dayOf = ({ date }: { date: string }): string => day(new Date(`${date}T12:00:00`));

const seconds = (ms: number): string =>
  ms < 1000 ? `${count(ms)} ms` : `${decimal(ms / 1000, ms < 10_000 ? 2 : 1)} s`;

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

/** Opens the list of what came on the day. */
const opening = (path: string, days: { date: string }[]) => (index: number): void => {
  const date = days[index]?.date;
  if (date !== undefined) openNarrowed(path, { from: date, to: date });
};

export function Charts({ overview }: { overview: OverviewData }) {
  return (
    <div class="grid two overview-charts">
      <Card><Spend {...overview.spend} /></Card>
      <Card><Calls {...overview.calls} /></Card>
      <Card><Conversations {...overview.conversations} /></Card>
      <Card><ReplyTimes {...overview.latency} /></Card>
      <Card class="overview-wide"><CallTimes {...overview.latency} /></Card>
    </div>
  );
}

const KINDS = [
  { name: "Messages", kind: "messages", colour: 1 },
  { name: "Calls", kind: "calls", colour: 2 },
  { name: "Numbers", kind: "numbers", colour: 3 },
  { name: "Other", kind: "other", colour: 4 },
] as const;

/** Kinds that nothing was spent on are not spoken of. */
function Spend({ by_day: days }: OverviewData["spend"]) {
  const series = KINDS.map(({ name, kind, colour }) =>
    ({ name, colour, values: days.map((row) => row[kind]) }));
  const used = series.filter(({ values }) => values.some((value) => value !== 0));
  return (
    <Chart
      title="Spend" kind="bars" labels={days.map(dayOf)} format={money}
      totals={Object.fromEntries(used.map(({ name, values }) => [name, money(sum(values))]))}
      series={used} empty="Nothing was billed in these days."
    />
  );
}

function Calls({ by_day: days }: OverviewData["calls"]) {
  const answered = days.map((row) => row.answered);
  const missed = days.map((row) => row.calls - row.answered);
  return (
    <Chart
      onOpen={opening("/calls", days)}
      title="Calls" kind="bars" labels={days.map(dayOf)} format={count} isWhole
      totals={{ [t("Answered")]: count(sum(answered)), [t("Not answered")]: count(sum(missed)) }}
      series={[
        { name: "Answered", colour: 2, values: answered },
        { name: "Not answered", colour: 3, values: missed },
      ]}
      empty="No calls in these days."
    />
  );
}

function Conversations({ by_day: days }: OverviewData["conversations"]) {
  const conversations = days.map((row) => row.conversations);
  const messages = days.map((row) => row.messages);
  return (
    <Chart
      onOpen={opening("/conversations", days)}
      title="Conversations" kind="lines" labels={days.map(dayOf)} format={count} isWhole
      totals={{ [t("Conversations")]: count(sum(conversations)), [t("Messages")]: count(sum(messages)) }}
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
  { name: "Half of them within", colour: 1 as const, values: days.map((figures) => figures?.p50 ?? null) },
  { name: t("95% of them within"), colour: 3 as const, values: days.map((figures) => figures?.p95 ?? null) },
];

const totalsOf = (figures: Figures): Record<string, string> => figures
  ? { [t("Half of them within")]: seconds(figures.p50), [t("95% of them within")]: seconds(figures.p95) }
  : {};

function ReplyTimes({ messages }: OverviewData["latency"]) {
  return (
    <Chart
      onOpen={opening("/conversations", messages.by_day)}
      title="Time to a written reply" kind="lines" labels={messages.by_day.map(dayOf)}
      format={seconds} totals={totalsOf(messages.reply_ms)}
      series={percentiles(messages.by_day.map((row) => row.reply_ms))}
      empty="No replies in these days."
    />
  );
}

const STAGES = [
  { name: "End of speech noticed", stage: "endpoint_ms" },
  { name: "Words understood", stage: "final_transcript_ms" },
  { name: "Model’s first word", stage: "first_token_ms" },
  { name: "Voice’s first sound", stage: "first_audio_ms" },
  { name: "Heard by the caller", stage: "heard_ms" },
] as const;

function CallTimes(latency: OverviewData["latency"]) {
  const { by_day: days, turns } = latency;
  const known = STAGES.filter(({ stage }) => latency[stage] !== null);
  return (
    <div class="overview-latency">
      <Chart
        onOpen={opening("/calls", days)}
        title="Time to an answer on calls" kind="lines" labels={days.map(dayOf)} format={seconds}
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
