// What the money went to, over any days: as a chart, a table and a file.
import { useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { csvLine } from "#core/csv.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";
import { Chart } from "#ui/dashboard/kit/chart.tsx";
import { Button, SelectField } from "#ui/dashboard/kit/controls.tsx";
import { DayFields, daysQuery } from "#ui/dashboard/kit/days.tsx";
import { downloadCsv } from "#ui/dashboard/kit/download.ts";
import { calendarDay, count, money, moneyExactly, percent } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Loaded, Notice } from "#ui/dashboard/kit/layout.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";
import { shownZone } from "#ui/dashboard/kit/zone.ts";
import { AssistantLink } from "#ui/dashboard/pages/calls/facts.tsx";

type Found = paths["/user/costs"]["get"]["responses"][200]["content"]["application/json"];
type Group = Found["groups"][number];
type GroupBy = NonNullable<
  NonNullable<paths["/user/costs"]["get"]["parameters"]["query"]>["group_by"]
>;

const GROUPS: { value: GroupBy; label: string }[] = [
  { value: "assistant", label: "Assistant" },
  { value: "campaign", label: "Campaign" },
  { value: "model", label: "Model" },
  { value: "channel", label: "Channel" },
  { value: "kind", label: "Kind" },
  { value: "day", label: "Day" },
];

const NONE: Record<GroupBy, string> = {
  assistant: "No assistant", campaign: "No campaign", model: "The server’s own model, or none",
  channel: "Other", kind: "Other", day: "",
};

/** Labels of channels and kinds, by their names in the API. */
const WORDS: Record<string, string> = {
  widget: "Website chat", api: "Chat via API", test: "Test chat", inbound: "Inbound calls",
  outbound: "Outbound calls", web: "Calls from a page", number: "Phone numbers",
  message: "Messages", call: "Calls", other: "Deducted by the operator",
};

function nameOf({ rest, id, name }: Group, by: GroupBy): string {
  if (rest) return "All others";
  if (id === null) return NONE[by];
  if (by === "day") return calendarDay(id);
  return name ?? WORDS[id] ?? `No longer available (${id})`;
}

function Name({ group, by }: { group: Group; by: GroupBy }) {
  const { id } = group;
  const name = nameOf(group, by);
  if (id === null) return <>{name}</>;
  if (by === "assistant") return <AssistantLink uuid={id} name={name} />;
  return by === "campaign" ? <a href={`#/campaigns/${id}`}>{name}</a> : <>{name}</>;
}

function csvOf({ days, groups }: Found, by: GroupBy): string {
  const head = [by, "id", "total_usd", "entries", ...(by === "day" ? [] : days)];
  const lines = groups.map((group) => csvLine([
    nameOf(group, by), group.id, group.total, group.entries, ...(by === "day" ? [] : group.by_day),
  ]));
  return [csvLine(head), ...lines].join("\n");
}

export function Costs() {
  const api = useApi();
  const [by, setBy] = useState<GroupBy>("assistant");
  const [days, setDays] = useState({ from: "", to: "" });
  const settled = useSettled(days);
  const query = { ...daysQuery(settled), group_by: by, timezone: shownZone() };
  const data = useData(`costs ${JSON.stringify(query)}`, () => unwrap(
    api.GET("/user/costs", { params: { query } })), ["balance_changed"], { gatherMs: 3000 });
  const { value } = data;
  const take = (): void => {
    if (!value) return;
    downloadCsv(csvOf(value, by), `costs-by-${by}-${value.date_from}-${value.date_to}`);
  };
  return (
    <Card
      title="Costs"
      actions={(
        <Button icon="download" disabled={!value || value.groups.length === 0} onClick={take}>
          Download as CSV
        </Button>
      )}
    >
      <div class="filters money-filters" role="search" aria-label="Filter costs">
        <SelectField
          label="By" value={by} onInput={(chosen) => setBy(chosen as GroupBy)} options={GROUPS}
        />
        <DayFields
          days={days} change={(part) => setDays((before) => ({ ...before, ...part }))}
        />
      </div>
      <Loaded data={data}>{(found) => <Report found={found} by={by} />}</Loaded>
    </Card>
  );
}

function Report({ found, by }: { found: Found; by: GroupBy }) {
  const { groups, total, complete, timezone, date_from: from, date_to: to } = found;
  const range = t(`${calendarDay(from)} to ${calendarDay(to)}`);
  return (
    <div class="stack">
      {!complete && (
        <Notice tone="warn">Older entries are still being added up. Check again in a minute.</Notice>
      )}
      {groups.length === 0 ? <Empty icon="ledger" title="Nothing was spent in these days." /> : (
        <>
          <CostChart found={found} by={by} />
          <CostTable groups={groups} by={by} total={total} />
        </>
      )}
      <p>
        <small>{range}, counted in {timezone}; at most a year. Empty: the last 30 days.</small>
      </p>
    </div>
  );
}

const COLOURS = [1, 2, 3] as const;

const CENTS = 100;

/**
 * One colour for each of the first groups, and one for all others. Drawn in cents, so that no
 * tick is less than one.
 */
function CostChart({ found: { days, groups, total }, by }: { found: Found; by: GroupBy }) {
  const sumOf = (some: Group[]) => days.map((_, at) =>
    some.reduce((sum, { by_day: byDay }) => sum + (byDay[at] ?? 0), 0));
  const series = by === "day"
    ? [{ name: "Costs", colour: 1 as const, values: sumOf(groups), total }]
    : groups.slice(0, COLOURS.length).map((group, at) => ({
        name: nameOf(group, by), colour: COLOURS[at] ?? 1, values: group.by_day, total: group.total,
      }));
  const rest = by === "day" ? [] : groups.slice(COLOURS.length);
  const all = rest.length === 0 ? series : [...series, {
    name: "All others", colour: 4 as const, values: sumOf(rest),
    total: rest.reduce((sum, group) => sum + group.total, 0),
  }];
  return (
    <Chart
      title="Costs by day" kind="bars" labels={days.map(calendarDay)}
      format={(cents) => money(cents / CENTS)} isWhole
      series={all.map((one) => ({ ...one, values: one.values.map((dollars) => dollars * CENTS) }))}
      totals={Object.fromEntries(all.map((one) => [one.name, money(one.total)]))}
      empty="Nothing was spent in these days."
    />
  );
}

function CostTable({ groups, by, total }: { groups: Group[]; by: GroupBy; total: number }) {
  const title = GROUPS.find(({ value }) => value === by)?.label ?? "";
  const label = `Costs by ${title.toLowerCase()}`;
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label={label}>
      <table class="figures money-table">
        <caption class="hidden-visually">{label}</caption>
        <thead>
          <tr>
            <th scope="col">{title}</th><th scope="col">Cost</th><th scope="col">Share</th>
            <th scope="col">Entries</th>
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => <Row key={group.id} group={group} by={by} total={total} />)}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Total</th><td title={moneyExactly(total)}>{money(total)}</td><td /><td>
              {count(groups.reduce((sum, { entries }) => sum + entries, 0))}
            </td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

function Row({ group, by, total }: { group: Group; by: GroupBy; total: number }) {
  return (
    <tr>
      <th scope="row"><Name group={group} by={by} /></th>
      <td title={moneyExactly(group.total)}>{money(group.total)}</td>
      <td>{total > 0 ? percent(group.total / total) : "–"}</td>
      <td>{count(group.entries)}</td>
    </tr>
  );
}
