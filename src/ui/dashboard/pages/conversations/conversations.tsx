// All conversations, newest first. Changes while somebody has scrolled down are announced instead
// of moving the list under them.
import { useEffect, useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { addressOf, fieldsFrom, useAddressed } from "#ui/dashboard/data/address.ts";
import { useEvents } from "#ui/dashboard/data/live.tsx";
import { useCursor } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useChosen } from "#ui/dashboard/kit/chosen.tsx";
import { Button, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { DayFields, daysQuery } from "#ui/dashboard/kit/days.tsx";
import { count, inOneLine, money, when, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Notice, Page } from "#ui/dashboard/kit/layout.tsx";
import { chosenColumns, ListTools } from "#ui/dashboard/kit/list-tools.tsx";
import { usePhone } from "#ui/dashboard/later.tsx";
import { Table, useTier, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { namedOptions } from "#ui/dashboard/kit/by-name.ts";
import { t } from "#ui/dashboard/kit/texts.ts";
import { useCalmly } from "#ui/dashboard/data/use-calmly.ts";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";
import { BulkBar } from "./bulk.tsx";
import "./conversations.css";

type ListPage =
  paths["/user/conversations"]["get"]["responses"][200]["content"]["application/json"];
type Listed = ListPage["data"][number];
export type Summary = Omit<Listed, "last_message">;

const TYPES = ["widget", "test", "api"] as const;
const ANY = { value: "", label: "Any" };
const NO_FILTER = {
  search: "", type: "", assistant: "", customer: "", from: "", to: "", columns: "",
};
type Filter = typeof NO_FILTER;

const CHANGES = [
  "conversation_created", "message_added", "desk_changed", "conversation_ended",
  "conversation_deleted",
];
const PAGE_ROWS = 50;

export const typeName = (type: string): string => type === "api" ? "API" : words(type);
/** The variables in which forms and programs put a person's name. */
const NAMES = ["name", "customer_name", "full_name", "first_name", "email", "phone"];

export function titleOf({ id, external_identifier: customer, variables }: Pick<
  Summary, "id" | "external_identifier" | "variables">): string {
  const given = NAMES.map((name) => variables?.[name]?.trim()).find(Boolean);
  return given ?? customer ?? `Visitor ${id.slice(0, 8)}`;
}

const STATES: Record<Summary["desk"], string> =
  { assistant: "AI answers", waiting: "Waiting for a person", person: "With a person" };

/** While a visitor waits for a person, the assistant still answers. */
const isRoutine = ({ desk }: Listed): boolean => desk === "assistant";
const stateOf = (row: Listed) => isRoutine(row)
  ? STATES.assistant
  : <span class="badge warn">{STATES[row.desk]}</span>;
const lastWords = ({ last_message: last }: Listed): string => last ? inOneLine(last.content) : "–";

const COLUMNS: Column<Listed>[] = [
  {
    title: "Customer", grow: 1.9, fits: "max(12.4rem, 12vw)",
    cell: (row, has) => <Customer row={row} has={has} />,
  },
  {
    title: "Last words", priority: 2,
    cell: (row) => <span class="last-words two">{lastWords(row)}</span>,
  },
  {
    title: "Last change", grow: 1.3, fits: "7rem",
    cell: ({ updated_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
  {
    title: "Assistant", priority: 2, fits: "max(8.4rem, 9vw)",
    cell: ({ assistant_name: name, type }) => (
      <span class="two" title={name}>{name} <small>{typeName(type)}</small></span>
    ),
  },
  { title: "State", priority: 2, fits: "8.2rem", isWords: true, cell: stateOf },
  {
    title: "Rating", priority: 3, fits: "6.4rem", align: "end",
    cell: ({ satisfaction }) => satisfaction
      ? t("{score} of 5", { score: satisfaction.score })
      : "–",
  },
  {
    title: "Messages", cell: ({ message_count: messages }) => count(messages), align: "end",
    priority: 3, fits: "7rem",
  },
  {
    title: "Cost", align: "end", priority: 3, fits: "6.5rem",
    cell: ({ total_cost: cost }) => money(cost),
  },
];

/**
 * On a narrow screen there are no columns for the last words and the state: both are shown below
 * the name.
 */
function Customer({ row, has }: { row: Listed; has(title: string): boolean }) {
  const phone = usePhone();
  const name = phone(titleOf(row));
  if (useTier() > 1) return <span class="two" title={name}>{name}</span>;
  const sub = [
    ...has("State") || isRoutine(row) ? [] : [stateOf(row), " "],
    ...has("Last words") ? [] : [lastWords(row)],
  ];
  return sub.length > 0 ? <TwoLines main={name} sub={sub} /> : <span title={name}>{name}</span>;
}

const queryOf = ({ search, type, assistant, customer, ...days }: Filter) => ({
  ...(search.trim() ? { search: search.trim() } : {}),
  ...daysQuery(days),
  ...(type ? { type: type as (typeof TYPES)[number] } : {}),
  ...(assistant ? { assistant_id: Number(assistant) } : {}),
  ...(customer.trim() ? { external_identifier: customer.trim() } : {}),
});

export function Conversations() {
  const api = useApi();
  const [filter, setFilter] = useAddressed("conversations", NO_FILTER);
  const settled = useSettled(filter);
  const rows = useCursor<Listed>(`conversations ${JSON.stringify(settled)}`, async (cursor) => {
    const query = { ...queryOf(settled), per_page: PAGE_ROWS, ...(cursor ? { cursor } : {}) };
    const { data, next_cursor: next } = await unwrap(
      api.GET("/user/conversations", { params: { query } }));
    return { rows: data, next };
  });
  const { hasNews, show } = useNews(rows.reload);
  const phone = usePhone();
  const nameOf = (row: Listed): string => phone(titleOf(row));
  const chosen = useChosen({
    key: JSON.stringify({ ...settled, columns: "" }), nameOf,
    gone: { event: "conversation_deleted", member: "conversation_id" },
  });
  const isFiltered = addressOf({ ...filter, columns: "" }) !== "";
  const clear = (): void => setFilter({ ...NO_FILTER, columns: filter.columns });
  return (
    <Page title="Conversations">
      {hasNews && (
        <Notice>
          <span>There is something new.</span>
          <button type="button" class="quiet" onClick={show}>Show it</button>
        </Notice>
      )}
      <Card class="flush">
        <Filters filter={filter} change={(part) => setFilter({ ...filter, ...part })}>
          {isFiltered && (
            <Button kind="quiet" icon="close" onClick={clear}>Clear filters</Button>
          )}
        </Filters>
        <ListTools
          list="conversations" fields={filter} columns={COLUMNS}
          show={(query) => setFilter(fieldsFrom(NO_FILTER, query))}
          readOn={async (cursor) => {
            const { data, next_cursor: next } = await unwrap(api.GET("/user/conversations", {
              params: {
                query: {
                  ...queryOf(filter), per_page: 100,
                  ...typeof cursor === "string" ? { cursor } : {},
                },
              },
            }));
            return { rows: data, next };
          }}
        />
        <BulkBar chosen={chosen} list={rows} nameOf={nameOf} onDeleted={show} />
        <Table
          label="Conversations" columns={chosenColumns(COLUMNS, filter.columns)} rows={rows}
          rowKey={({ id }) => id} choice={chosen.choice}
          href={({ id }) => `#/conversations/${id}`}
          empty={isFiltered
            ? <Empty icon="search" title="No conversations match these filters." />
            : (
              <Empty icon="conversations" title="No conversations yet.">
                Open an <a href="#/assistants">assistant</a> to write with it, or to put it on a website.
              </Empty>
            )}
        />
      </Card>
    </Page>
  );
}

/** Reloading a list with a cursor starts it over, so this happens only while its top is in view. */
function useNews(reload: () => void): { hasNews: boolean; show(): void } {
  const [hasNews, setNews] = useState(false);
  useEvents(CHANGES, useCalmly(() => {
    if (scrollY < innerHeight) reload();
    else setNews(true);
  }));
  useEffect(() => () => setNews(false), [reload]);
  return {
    hasNews,
    show: () => {
      setNews(false);
      scrollTo(0, 0);
      reload();
    },
  };
}

function Filters({ filter, change, children }: {
  filter: Filter; change(part: Partial<Filter>): void; children: preact.ComponentChildren;
}) {
  const { value: assistants } = useAssistants();
  return (
    <div class="filters" role="search" aria-label="Filter conversations">
      <TextField
        label="Search" type="search" value={filter.search} autoComplete="off" maxLength={200}
        placeholder="Words in messages" onInput={(search) => change({ search })}
      />
      <SelectField
        label="Type" value={filter.type} onInput={(type) => change({ type })}
        options={[ANY, ...TYPES.map((value) => ({ value, label: typeName(value) }))]}
      />
      <SelectField
        label="Assistant" value={filter.assistant} onInput={(assistant) => change({ assistant })}
        options={[ANY, ...namedOptions(assistants ?? [])]}
      />
      <TextField
        label="Customer" type="search" value={filter.customer} autoComplete="off" maxLength={255}
        placeholder="The full identifier" onInput={(customer) => change({ customer })}
      />
      <DayFields days={filter} change={change} />
      {children}
    </div>
  );
}
