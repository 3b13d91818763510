// What is going on in the account: figures and charts of the last days, current calls, recent
// activity. Live: events reload it.
import type { paths } from "#client/client.ts";
import { useAddressed } from "#ui/dashboard/data/address.ts";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { Needs } from "#ui/dashboard/data/rights.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";
import { Button, SelectField } from "#ui/dashboard/kit/controls.tsx";
import { DayFields } from "#ui/dashboard/kit/days.tsx";
import { count, minutesOf, money, words } from "#ui/dashboard/kit/format.ts";
import { Card, Figure, Loaded, Page } from "#ui/dashboard/kit/layout.tsx";
import { namedOptions } from "#ui/dashboard/kit/by-name.ts";
import { Charts } from "./charts.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { Lately } from "./lately.tsx";
import { LiveNow } from "./live-now.tsx";
import {
  DAYS_DEFAULT, fits, NO_RANGE, periodBefore, queryOf, rangeOf, UNITS, type Range,
  type RangeFields,
} from "./range.ts";
import "./overview.css";
import { plural } from "#ui/dashboard/kit/texts.ts";

export type OverviewData =
  paths["/user/overview"]["get"]["responses"][200]["content"]["application/json"];

const RANGES = [1, 7, 30, 90];
const CHANGES = [
  "balance_changed", "conversation_created", "message_added", "call_created",
  "call_status_changed", "call_ended", "call_deleted", "conversation_deleted",
];
/** Summing up many days is costly for the server. */
const GATHER_MS = 2000;
/** Past days hardly change. */
const BEFORE_FRESH_MS = 600_000;

type Narrow = (part: Partial<RangeFields>) => void;

export function Overview() {
  const api = useApi();
  const [fields, setFields] = useAddressed("overview", NO_RANGE);
  const change: Narrow = (part) => setFields({ ...fields, ...part });
  const settled = rangeOf(useSettled(fields));
  const load = (asked: Range) => unwrap(api.GET("/user/overview", {
    params: { query: queryOf(asked) },
  }));
  const data = useData(
    `overview ${JSON.stringify(settled)}`, () => load(settled), CHANGES, { gatherMs: GATHER_MS });
  // Without a comparison this is the key of `data` above, so that nothing more is loaded.
  const compared = fields.before === "" ? settled : periodBefore(settled);
  const before = useData(
    `overview ${JSON.stringify(compared)}`, () => load(compared), [], { freshMs: BEFORE_FRESH_MS });
  const range = rangeOf(fields);
  return (
    <Page title="Overview" actions={<Ranges days={daysOf(fields)} change={change} />}>
      <Narrowing fields={fields} range={range} change={change} />
      <Loaded data={data}>
        {(overview) => (
          <>
            <FirstSteps steps={overview.first_steps} onChange={data.reload} />
            <Figures overview={overview} inRange={inRange(range)} />
            <div class="grid overview-halves">
              <LiveNow />
              <Charts
                overview={overview} range={settled}
                before={fields.before === "" ? null : before.value}
              />
              <Lately newest={overview.id} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** The one of the offered ranges that is shown; null: another. */
const daysOf = ({ from, to, days }: RangeFields): number | null =>
  from === "" && to === "" ? Number(days) || DAYS_DEFAULT : null;

const inRange = ({ length }: Range): string => plural(length, "in {count} day", "in {count} days");

const sum = <T,>(rows: T[], of: (row: T) => number): number =>
  rows.reduce((total, row) => total + of(row), 0);

function Ranges({ days, change }: { days: number | null; change: Narrow }) {
  return (
    <div class="overview-ranges" role="group" aria-label="Days shown">
      {RANGES.map((range) => (
        <button
          key={range} type="button" class="button" aria-pressed={range === days}
          onClick={() => change({ days: String(range), from: "", to: "" })}
        >
          {range === 1 ? "Today" : `${range} days`}
        </button>
      ))}
    </div>
  );
}

function Narrowing({ fields, range, change }: {
  fields: RangeFields; range: Range; change: Narrow;
}) {
  const { value: assistants } = useAssistants();
  const isNarrowed = ["from", "to", "by", "assistant", "before"]
    .some((name) => fields[name as keyof RangeFields] !== "");
  return (
    <div class="filters overview-narrowing" role="search" aria-label="Filter the charts">
      <DayFields days={fields} change={change} />
      <SelectField
        label="By" value={range.by} onInput={(by) => change({ by })}
        options={UNITS.map((unit) =>
          ({ value: unit, label: words(unit), isDisabled: !fits(unit, range.length) }))}
      />
      <SelectField
        label="Assistant" value={fields.assistant} onInput={(assistant) => change({ assistant })}
        options={[{ value: "", label: "All" }, ...namedOptions(assistants ?? [])]}
      />
      <SelectField
        label="Compare with" value={fields.before} onInput={(before) => change({ before })}
        options={[{ value: "", label: "Nothing" }, { value: "1", label: "The period before" }]}
      />
      {isNarrowed && (
        <Button
          kind="quiet" icon="close"
          onClick={() => change({ ...NO_RANGE, days: fields.days })}
        >
          Clear
        </Button>
      )}
    </div>
  );
}

function Figures({ overview, inRange: inDays }: { overview: OverviewData; inRange: string }) {
  const { balance, reserved, spend, conversations, calls } = overview;
  const made = sum(calls.by_day, (day) => day.calls);
  const answered = sum(calls.by_day, (day) => day.answered);
  return (
    <Card class="overview-figures">
      <h2 class="hidden-visually">Figures {inDays}</h2>
      <dl class="figures-row">
        <Figure
          label="Balance" value={money(balance)}
          note={reserved > 0
            ? `${money(reserved)} reserved`
            : <Needs right="money"><a href="#/ledger">Ledger</a></Needs>}
        />
        <Figure label="Spent" value={money(spend.total)} note={inDays} />
        <Figure label="Live calls" value={count(calls.live)} note={<a href="#/calls">Calls</a>} />
        <Figure
          label="Conversations" note={inDays}
          value={count(sum(conversations.by_day, (day) => day.conversations))}
        />
        <Figure
          label="Messages" value={count(sum(conversations.by_day, (day) => day.messages))}
          note="in them"
        />
        <Figure
          label="Calls answered" value={count(answered)}
          note={made > 0 ? `of ${count(made)} (${Math.round((answered / made) * 100)}%)` : inDays}
        />
        <Figure label="Minutes talked" value={count(minutesOf(calls.by_day))} note={inDays} />
      </dl>
    </Card>
  );
}
