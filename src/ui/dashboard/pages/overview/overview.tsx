// What is going on in the account: figures and charts of the last days, who is talking now, what
// happened lately. Live: events have it loaded again.
import { useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { count, money } from "#ui/dashboard/kit/format.ts";
import { Card, Figure, Loaded, Page } from "#ui/dashboard/kit/layout.tsx";
import { Charts } from "./charts.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { Lately } from "./lately.tsx";
import { LiveNow } from "./live-now.tsx";
import "./overview.css";
import { t } from "#ui/dashboard/kit/texts.ts";

export type OverviewData =
  paths["/user/overview"]["get"]["responses"][200]["content"]["application/json"];

const RANGES = [7, 30, 90];
const CHANGES = [
  "balance_changed", "conversation_created", "message_added", "call_created",
  "call_status_changed", "call_ended", "call_deleted",
];
/** Summing up many days is work for the server. */
const GATHER_MS = 2000;

/** As it was when the page was left. */
let lastDays = 30;

export function Overview() {
  const api = useApi();
  const [days, setDays] = useState(lastDays);
  const data = useData(`overview ${days}`, () => unwrap(api.GET("/user/overview", {
    params: { query: { days } },
  })), CHANGES, { gatherMs: GATHER_MS });
  const choose = (next: number): void => {
    lastDays = next;
    setDays(next);
  };
  return (
    <Page title="Overview" actions={<Ranges days={days} choose={choose} />}>
      <Loaded data={data}>
        {(overview) => (
          <>
            <FirstSteps steps={overview.first_steps} onChange={data.reload} />
            <Figures overview={overview} days={days} />
            <div class="grid overview-halves">
              <LiveNow />
              <Charts overview={overview} />
              <Lately newest={overview.id} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}

const sum = <T,>(rows: T[], of: (row: T) => number): number =>
  rows.reduce((total, row) => total + of(row), 0);

function Ranges({ days, choose }: { days: number; choose(days: number): void }) {
  return (
    <div class="overview-ranges" role="group" aria-label="Days shown">
      {RANGES.map((range) => (
        <button
          key={range} type="button" class="button" aria-pressed={range === days}
          onClick={() => choose(range)}
        >
          {range} days
        </button>
      ))}
    </div>
  );
}

function Figures({ overview, days }: { overview: OverviewData; days: number }) {
  const { balance, reserved, spend, conversations, calls } = overview;
  const made = sum(calls.by_day, (day) => day.calls);
  const answered = sum(calls.by_day, (day) => day.answered);
  const minutes = sum(calls.by_day, (day) => day.minutes);
  const inDays = t(`in ${days} days`);
  return (
    <Card class="overview-figures">
      <h2 class="hidden-visually">Figures of the last {days} days</h2>
      <dl class="figures-row">
        <Figure
          label="Balance" value={money(balance)}
          note={reserved > 0 ? `${money(reserved)} reserved` : <a href="#/ledger">Ledger</a>}
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
        <Figure label="Minutes talked" value={count(Math.round(minutes * 10) / 10)} note={inDays} />
      </dl>
    </Card>
  );
}
