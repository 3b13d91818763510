// All calls, newest first, with the API's filters.
import { addressOf, fieldsFrom, useAddressed } from "#ui/dashboard/data/address.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { usePages } from "#ui/dashboard/data/rows.ts";
import { useChosen } from "#ui/dashboard/kit/chosen.tsx";
import { Button, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { DayFields, daysQuery } from "#ui/dashboard/kit/days.tsx";
import { duration, money, when, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Status } from "#ui/dashboard/kit/layout.tsx";
import { chosenColumns, ListTools } from "#ui/dashboard/kit/list-tools.tsx";
import { usePhone } from "#ui/dashboard/later.tsx";
import { Table, useTier, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { namedOptions } from "#ui/dashboard/kit/by-name.ts";
import {
  customerOf, isLive, STATUSES, TYPES, typeWords, type CallRecord,
} from "./call-state.ts";
import { ChosenCalls } from "./delete.tsx";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";

const ANY = { value: "", label: "Any" };
const NO_FILTER = {
  search: "", status: "", type: "", assistant: "", phone: "", from: "", to: "", columns: "",
};
type Filter = typeof NO_FILTER;

const CHANGES = ["call_created", "call_status_changed", "call_ended", "call_deleted"];

const COLUMNS: Column<CallRecord>[] = [
  {
    title: "Customer", fits: "max(10.8rem, 12vw)",
    cell: (call, has) => <Customer call={call} hasStatus={has("Status")} />,
  },
  {
    title: "Last words", priority: 3,
    cell: ({ transcript_entries: entries }) =>
      <span class="last-words two">{entries.findLast(({ text }) => text !== "")?.text ?? "–"}</span>,
  },
  {
    title: "Started", fits: "6.3rem", priority: 2,
    cell: ({ created_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
  {
    title: "Direction", priority: 3, fits: "7rem", isWords: true,
    cell: ({ type }) => typeWords(type),
  },
  {
    title: "Assistant", priority: 2,
    cell: ({ assistant_name: name }) => <span class="two">{name}</span>,
  },
  { title: "Status", priority: 2, cell: ({ status }) => <Status code={status} />, fits: "10.6rem" },
  {
    title: "Duration", align: "end", priority: 2, fits: "6.2rem",
    cell: ({ status, duration: seconds }) => isLive(status) ? "–" : duration(seconds),
  },
  {
    title: "Cost", align: "end", priority: 3, fits: "6.5rem",
    cell: ({ status, total_cost: cost }) => isLive(status) ? "–" : money(cost),
  },
];

/** On a narrow screen there is no column for the status, which is shown below the name. */
function Customer({ call, hasStatus }: { call: CallRecord; hasStatus: boolean }) {
  const phone = usePhone();
  const name = phone(customerOf(call));
  return useTier() > 1 || hasStatus
    ? <span class="two">{name}</span>
    : <TwoLines main={name} sub={<Status code={call.status} />} />;
}

const queryOf = ({ search, status, type, assistant, phone, ...days }: Filter) => ({
  ...(search.trim() ? { search: search.trim() } : {}),
  ...(status ? { status: status as (typeof STATUSES)[number] } : {}),
  ...(type ? { type: type as (typeof TYPES)[number] } : {}),
  ...(assistant ? { assistant_id: Number(assistant) } : {}),
  ...(phone.trim() ? { phone_number: phone.trim() } : {}),
  ...daysQuery(days),
});

export function CallList() {
  const api = useApi();
  const [filter, setFilter] = useAddressed("calls", NO_FILTER);
  const settled = useSettled(filter);
  const rows = usePages<CallRecord>(`calls ${JSON.stringify(settled)}`, async (page, perPage) => {
    const { data, total } = await unwrap(api.GET("/user/calls", {
      params: { query: { ...queryOf(settled), page, per_page: perPage } },
    }));
    return { rows: data, total };
  }, CHANGES);
  const phone = usePhone();
  const nameOf = (call: CallRecord): string => `${phone(customerOf(call))}, ${when(call.created_at)}`;
  const chosen = useChosen({
    key: JSON.stringify({ ...settled, columns: "" }), nameOf,
    gone: { event: "call_deleted", member: "call_id" },
  });
  const isFiltered = addressOf({ ...filter, columns: "" }) !== "";
  const clear = () => setFilter({ ...NO_FILTER, columns: filter.columns });
  return (
    <Card title="All calls" class="flush calls-all">
      <Filters filter={filter} change={(part) => setFilter({ ...filter, ...part })}>
        {isFiltered && <Button kind="quiet" icon="close" onClick={clear}>Clear filters</Button>}
      </Filters>
      <ListTools
        list="calls" fields={filter} columns={COLUMNS}
        show={(query) => setFilter(fieldsFrom(NO_FILTER, query))}
        readOn={async (page) => {
          const { data, next_page_url: next } = await unwrap(api.GET("/user/calls", {
            params: { query: { ...queryOf(filter), page: Number(page ?? 1), per_page: 100 } },
          }));
          return { rows: data, next: next === null ? null : Number(page ?? 1) + 1 };
        }}
      />
      <ChosenCalls chosen={chosen} list={rows} nameOf={nameOf} />
      <Table
        label="Calls" columns={chosenColumns(COLUMNS, filter.columns)} rows={rows} rowKey={({ id }) => id}
        choice={chosen.choice} href={({ id }) => `#/calls/${id}`}
        empty={isFiltered
          ? <Empty icon="search" title="No calls match these filters." />
          : (
            <Empty icon="calls" title="No calls yet.">
              Press “Try an assistant” to have the server's own caller call one.
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
      <TextField
        label="Search" type="search" value={filter.search} autoComplete="off" maxLength={200}
        placeholder="What was said" onInput={(search) => change({ search })}
      />
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
        options={[ANY, ...namedOptions(assistants ?? [])]}
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
