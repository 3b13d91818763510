// A campaign's figures: who is being called now, rates, cost, pace and end, charts over time, and
// the leads that failed by reason.
import type { Campaign } from "#ui/dashboard/data/lists.ts";
import type { Data } from "#ui/dashboard/data/use-data.ts";
import { Chart } from "#ui/dashboard/kit/chart.tsx";
import { count, duration, instant, money, when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Figure, Loaded, Status } from "#ui/dashboard/kit/layout.tsx";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";
import { outcomeWords } from "#ui/dashboard/pages/leads/outcome-words.ts";
import { failedOf, percent, type Figures, type Width } from "./figures.ts";
import { periodLabels, useClock } from "./words.ts";

const share = (value: number | null): string => (value === null ? "–" : percent(value));

export function FiguresCard({ data, hasGoal }: { data: Data<Figures>; hasGoal: boolean }) {
  return (
    <Card title="Calls">
      <Loaded data={data}>
        {(figures) => (
          <dl class="figures-row" aria-label="Figures for its calls">
            <Figure label="Calls" value={count(figures.totals.calls)} />
            <Figure label="Answered" value={share(figures.answer_rate)} note={count(figures.totals.answered)} />
            <Figure
              label="Answering machine" value={share(figures.voicemail_rate)}
              note={count(figures.totals.voicemail)}
            />
            {hasGoal && (
              <Figure
                label="Goal reached" value={share(figures.goal_rate)}
                note={count(figures.totals.goals)}
              />
            )}
            <Figure
              label="Cost" value={money(figures.totals.cost)}
              note={duration(figures.totals.talk_seconds)}
            />
            <Figure
              label="Calls an hour"
              value={figures.calls_per_hour === null ? "–" : count(Math.round(figures.calls_per_hour))}
            />
            <Figure label="Finished around" value={<End at={figures.estimated_end} />} />
          </dl>
        )}
      </Loaded>
    </Card>
  );
}

const End = ({ at }: { at: string | null }) =>
  at === null ? <>–</> : <time title={whenExactly(at)}>{when(at)}</time>;

const TICK_MS = 1000;

/** Who is on the line, or about to be. */
export function CallingCard({ data }: { data: Data<Figures> }) {
  const calling = data.value?.calling ?? [];
  return (
    <Card title="Being called now" class="campaigns-calling">
      {calling.length === 0
        ? <p class="soft">Nobody is being called right now.</p>
        : <ul aria-label="Being called now">{calling.map((one) => <Called key={one.call_id} {...one} />)}</ul>}
    </Card>
  );
}

const nameOf = ({ variables }: Figures["calling"][number]): string =>
  Object.values(variables).find((text) => text !== "") ?? "";

function Called(called: Figures["calling"][number]) {
  const { phone_number: number, call_id: call, status, since, answered_at: answered } = called;
  const now = useClock(TICK_MS);
  const seconds = (now.getTime() - instant(answered ?? since).getTime()) / 1000;
  return (
    <li>
      <a href={`#/calls/${call}`}>{formatPhone(number)}</a>
      <span class="soft campaigns-who">{nameOf(called)}</span>
      <Status code={status} />
      <span class="campaigns-since">{duration(seconds)}</span>
    </li>
  );
}

export function ChartsCard({ data, by, onWidth, campaign }: {
  data: Data<Figures>; by: Width; onWidth(by: Width): void; campaign: Campaign;
}) {
  const hasGoal = campaign.goal_completion_variable !== null;
  const periods = data.value?.periods ?? [];
  if ((data.value?.totals.calls ?? 0) === 0) return null;
  const labels = periodLabels(periods, by, campaign.timezone);
  const rate = (of: (period: Figures["periods"][number]) => [part: number, whole: number]) =>
    periods.map((period) => {
      const [part, whole] = of(period);
      return whole === 0 ? null : part / whole;
    });
  const empty = "Nobody was called in this time.";
  return (
    <Card
      title="Over time" class="campaigns-charts"
      actions={(
        <div class="campaigns-widths" role="group" aria-label="Chart interval">
          {(["hour", "day"] as const).map((width) => (
            <button
              key={width} type="button" class="campaigns-key" aria-pressed={by === width}
              onClick={() => onWidth(width)}
            >
              {width === "hour" ? "Hours" : "Days"}
            </button>
          ))}
        </div>
      )}
    >
      <div class="grid two">
        <Chart
          title="How calls ended" kind="bars" isWhole labels={labels} format={count} empty={empty}
          series={[
            { name: "Answered", colour: 1, values: periods.map(({ answered }) => answered) },
            { name: "Answering machine", colour: 2, values: periods.map(({ voicemail }) => voicemail) },
            { name: "Not answered", colour: 3, values: periods.map((one) => one.busy + one.no_answer) },
            { name: "Failed", colour: 4, values: periods.map(({ failed }) => failed) },
          ]}
        />
        <Chart
          title="Rates" kind="lines" labels={labels} format={percent} empty={empty}
          series={[
            { name: "Answered", colour: 1, values: rate((one) => [one.answered, one.calls]) },
            { name: "Answering machine", colour: 2, values: rate((one) => [one.voicemail, one.calls]) },
            ...(hasGoal
              ? [{ name: "Goal reached", colour: 3 as const, values: rate((one) => [one.goals, one.answered]) }]
              : []),
          ]}
        />
        <Chart
          title="Cost" kind="bars" labels={labels} format={money} empty="Nothing was billed in this time."
          series={[{ name: "Cost", colour: 1, values: periods.map(({ cost }) => cost) }]}
        />
      </div>
    </Card>
  );
}

/** Filters the list by leads that are due, or by a reason of failure. */
export function ReasonKeys({ data, outcome, isDue, onOutcome, onDue }: {
  data: Data<Figures>;
  /** The reason that the list is filtered by; empty: any. */
  outcome: string; isDue: boolean;
  onOutcome(outcome: string): void; onDue(isDue: boolean): void;
}) {
  const { value } = data;
  if (!value) return null;
  const failed = failedOf(value);
  if (value.leads_due === 0 && failed.length === 0 && !isDue && outcome === "") return null;
  return (
    <div class="campaigns-keys" role="group" aria-label="Leads that are due or were not reached">
      {(value.leads_due > 0 || isDue) && (
        <button type="button" class="campaigns-key" aria-pressed={isDue} onClick={() => onDue(!isDue)}>
          Due <b>{count(value.leads_due)}</b>
        </button>
      )}
      {failed.map(([name, leads]) => (
        <button
          key={name} type="button" class="campaigns-key" aria-pressed={outcome === name}
          onClick={() => onOutcome(outcome === name ? "" : name)}
        >
          {outcomeWords(name)} <b>{count(leads)}</b>
        </button>
      ))}
    </div>
  );
}
