// All calls, newest first, narrowed by what the API can filter by.
import { useEffect, useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { usePages } from "#ui/dashboard/data/rows.ts";
import { Button, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { DayFields, daysQuery } from "#ui/dashboard/kit/days.tsx";
import { duration, money, when, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Status } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { assistantOptions } from "./assistants.ts";
import {
  customerOf, isLive, STATUSES, TYPES, typeWords, type CallRecord,
} from "./call-state.ts";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";

const ANY = { value: "", label: "Any" };
const NO_FILTER = { status: "", type: "", assistant: "", phone: "", from: "", to: "" };
type Filter = typeof NO_FILTER;

/** As it was when the list was left, for whoever comes back from a call. */
let lastFilter = NO_FILTER;

const CHANGES = ["call_created", "call_status_changed", "call_ended", "call_deleted"];

const COLUMNS: Column<CallRecord>[] = [
  { title: "Customer", cell: customerOf, grow: 1.3 },
  {
    title: "Started", grow: 1.1, priority: 2,
    cell: ({ created_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
  { title: "Direction", cell: ({ type }) => typeWords(type), priority: 3 },
  { title: "Assistant", cell: ({ assistant_name: name }) => name, priority: 2, grow: 1.3 },
  { title: "Status", cell: ({ status }) => <Status code={status} />, grow: 1.3 },
  {
    title: "Duration", align: "end", priority: 2, grow: 0.8,
    cell: ({ status, duration: seconds }) => isLive(status) ? "–" : duration(seconds),
  },
  {
    title: "Cost", align: "end", priority: 3, grow: 0.8,
    cell: ({ status, total_cost: cost }) => isLive(status) ? "–" : money(cost),
  },
];

const queryOf = ({ status, type, assistant, phone, ...days }: Filter) => ({
  ...(status ? { status: status as (typeof STATUSES)[number] } : {}),
  ...(type ? { type: type as (typeof TYPES)[number] } : {}),
  ...(assistant ? { assistant_id: Number(assistant) } : {}),
  ...(phone.trim() ? { phone_number: phone.trim() } : {}),
  ...daysQuery(days),
});

export function CallList() {
  const api = useApi();
  const [filter, setFilter] = useState(lastFilter);
  const settled = useSettled(filter);
  useEffect(() => {
    lastFilter = filter;
  }, [filter]);
  const rows = usePages<CallRecord>(`calls ${JSON.stringify(settled)}`, async (page, perPage) => {
    const { data, total } = await unwrap(api.GET("/user/calls", {
      params: { query: { ...queryOf(settled), page, per_page: perPage } },
    }));
    return { rows: data, total };
  }, CHANGES);
  const isFiltered = Object.values(filter).some(Boolean);
  const clear = () => setFilter(NO_FILTER);
  return (
    <Card title="All calls" class="flush calls-all">
      <Filters filter={filter} change={(part) => setFilter({ ...filter, ...part })}>
        {isFiltered && <Button kind="quiet" icon="close" onClick={clear}>Clear filters</Button>}
      </Filters>
      <Table
        label="Calls" columns={COLUMNS} rows={rows} rowKey={({ id }) => id}
        href={({ id }) => `#/calls/${id}`}
        empty={isFiltered
          ? <Empty icon="search" title="No call fits these filters." />
          : (
            <Empty icon="calls" title="No calls yet.">
              Press “Try an assistant” to have one rung by the server's own caller.
            </Empty>
          )}
      />
    </Card>
  );
}

function Filters({ filter, change, children }: {
  filter: Filter; change(part: Partial<Filter>): void; children: preact.ComponentChildren;
}) {
  const { value: assistants } = useAssistants();
  return (
    <div class="filters" role="search" aria-label="Filter calls">
      <SelectField
        label="Status" value={filter.status} onInput={(status) => change({ status })}
        options={[ANY, ...STATUSES.map((value) => ({ value, label: words(value) }))]}
      />
      <SelectField
        label="Direction" value={filter.type} onInput={(type) => change({ type })}
        options={[ANY, ...TYPES.map((value) => ({ value, label: typeWords(value) }))]}
      />
      <SelectField
        label="Assistant" value={filter.assistant} onInput={(assistant) => change({ assistant })}
        options={[ANY, ...assistantOptions(assistants ?? [])]}
      />
      <TextField
        label="Phone number" type="tel" value={filter.phone} onInput={(phone) => change({ phone })}
        placeholder="+15550100000" autoComplete="off" maxLength={255}
      />
      <DayFields days={filter} change={change} />
      {children}
    </div>
  );
}
