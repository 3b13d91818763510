// All conversations, newest first. What changes while somebody has scrolled down is announced
// instead of pulling the list from under them.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { useEvents } from "#ui/dashboard/data/live.tsx";
import { useCursor } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { count, money, when, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Notice, Page } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { assistantOptions } from "#ui/dashboard/pages/calls/assistants.ts";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";
import "./conversations.css";

type ListPage =
  paths["/user/conversations"]["get"]["responses"][200]["content"]["application/json"];
export type Summary = ListPage["data"][number];

const TYPES = ["widget", "test", "api"] as const;
const ANY = { value: "", label: "Any" };
const NO_FILTER = { type: "", assistant: "", customer: "" };
type Filter = typeof NO_FILTER;

/** As it was when the list was left, for whoever comes back from a conversation. */
let lastFilter = NO_FILTER;

const CHANGES = ["conversation_created", "message_added", "ai_toggled", "conversation_ended"];
const PAGE_ROWS = 50;
/** Bursts of messages are one change of the list. */
const GATHER_MS = 200;

export const typeName = (type: string): string => type === "api" ? "API" : words(type);
export const titleOf = ({ id, external_identifier: customer }: Summary): string =>
  customer ?? `Visitor ${id.slice(0, 8)}`;

const COLUMNS: Column<Summary>[] = [
  { title: "Customer", cell: titleOf, grow: 1.4 },
  {
    title: "Last change", grow: 1.1,
    cell: ({ updated_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
  { title: "Assistant", cell: ({ assistant_name: name }) => name, priority: 2, grow: 1.4 },
  { title: "Type", cell: ({ type }) => typeName(type), priority: 2, grow: 0.7 },
  {
    title: "AI", priority: 3, grow: 0.7,
    cell: ({ ai_enabled: isOn }) => isOn ? "On" : <span class="badge warn">Off</span>,
  },
  {
    title: "Messages", cell: ({ message_count: messages }) => count(messages), align: "end",
    priority: 2, grow: 0.7,
  },
  {
    title: "Cost", cell: ({ total_cost: cost }) => money(cost), align: "end", priority: 3, grow: 0.7,
  },
];

const queryOf = ({ type, assistant, customer }: Filter) => ({
  ...(type ? { type: type as (typeof TYPES)[number] } : {}),
  ...(assistant ? { assistant_id: Number(assistant) } : {}),
  ...(customer.trim() ? { external_identifier: customer.trim() } : {}),
});

export function Conversations() {
  const api = useApi();
  const [filter, setFilter] = useState(lastFilter);
  const settled = useSettled(filter);
  useEffect(() => {
    lastFilter = filter;
  }, [filter]);
  const rows = useCursor<Summary>(`conversations ${JSON.stringify(settled)}`, async (cursor) => {
    const query = { ...queryOf(settled), per_page: PAGE_ROWS, ...(cursor ? { cursor } : {}) };
    const { data, next_cursor: next } = await unwrap(
      api.GET("/user/conversations", { params: { query } }));
    return { rows: data, next };
  });
  const { hasNews, show } = useNews(rows.reload);
  const isFiltered = Object.values(filter).some(Boolean);
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
            <Button kind="quiet" icon="close" onClick={() => setFilter(NO_FILTER)}>Clear filters</Button>
          )}
        </Filters>
        <Table
          label="Conversations" columns={COLUMNS} rows={rows} rowKey={({ id }) => id}
          href={({ id }) => `#/conversations/${id}`}
          empty={isFiltered
            ? <Empty icon="search" title="No conversation fits these filters." />
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

/** A list by cursor begins anew when it is loaded again: only done while its top is in view. */
function useNews(reload: () => void): { hasNews: boolean; show(): void } {
  const [hasNews, setNews] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  useEvents(CHANGES, useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      if (scrollY < innerHeight) reload();
      else setNews(true);
    }, GATHER_MS);
  }, [reload]));
  useEffect(() => () => {
    if (timer.current !== null) clearTimeout(timer.current);
    timer.current = null;
  }, [reload]);
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
      <SelectField
        label="Type" value={filter.type} onInput={(type) => change({ type })}
        options={[ANY, ...TYPES.map((value) => ({ value, label: typeName(value) }))]}
      />
      <SelectField
        label="Assistant" value={filter.assistant} onInput={(assistant) => change({ assistant })}
        options={[ANY, ...assistantOptions(assistants ?? [])]}
      />
      <TextField
        label="Customer" type="search" value={filter.customer} autoComplete="off" maxLength={255}
        placeholder="The whole identifier" onInput={(customer) => change({ customer })}
      />
      {children}
    </div>
  );
}
