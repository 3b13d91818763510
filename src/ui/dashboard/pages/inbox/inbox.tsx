// The inbox: queues of conversations on one side, the chosen one on the other, and keys for both.
import { useEffect, useRef } from "preact/hooks";
import type { Parley, paths } from "#client/client.ts";
import { inOrder } from "#ui/characters.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";
import { Button, TextField } from "#ui/dashboard/kit/controls.tsx";
import { count, inOneLine, when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Loaded, Page } from "#ui/dashboard/kit/layout.tsx";
import type { PageProps } from "#ui/dashboard/page.ts";
import { titleOf } from "#ui/dashboard/pages/conversations/conversations.tsx";
import { AlertChoices } from "./alerts.tsx";
import { Filters, queryOf, QUEUES, useShown, type Queue } from "./filters.tsx";
import { Place } from "./place.tsx";
import "./inbox.css";

export type InboxPage =
  paths["/user/inbox"]["get"]["responses"][200]["content"]["application/json"];
type InboxRow = InboxPage["data"][number];
type Query = paths["/user/inbox"]["get"]["parameters"]["query"];

const CHANGES = [
  "desk_changed", "message_added", "conversation_created", "conversation_ended",
  "conversation_deleted",
  "callback_requested", "callback_done", "conversation_read",
];
const PAGE_ROWS = 100;

export function Inbox({ params }: PageProps) {
  const uuid = params.uuid ?? null;
  const { shown: filter, change } = useShown();
  const { queue, search } = filter;
  const settled = useSettled(search).trim();
  const query = { ...queryOf(filter, settled), per_page: PAGE_ROWS };
  const { data, showMore } = useQueue(query);
  const isFiltered = Object.keys(query).length > 2;
  const counts = data.value?.counts;
  const rows = data.value?.data ?? [];
  const chosen = rows.findIndex(({ id }) => id === uuid);
  useKeys({
    j: () => open(rows[chosen + 1]),
    k: () => open(rows[Math.max(0, chosen - 1)]),
    "/": () => document.querySelector<HTMLElement>(".inbox-search input")?.focus(),
    r: () => document.querySelector<HTMLElement>(".inbox-composer textarea")?.focus(),
    t: () => document.querySelector<HTMLElement>("[aria-keyshortcuts=t]")?.click(),
    h: () => document.querySelector<HTMLElement>("[aria-keyshortcuts=h]")?.click(),
  });
  const waiting = counts?.waiting ?? 0;
  return (
    <Page title={waiting > 0 ? `Inbox (${count(waiting)})` : "Inbox"}>
      <div class={`inbox ${uuid ? "chosen" : ""}`}>
        <Card class="flush inbox-list">
          <div class="inbox-queues" role="group" aria-label="Queue">
            {QUEUES.map(({ id, label }) => (
              <button
                key={id} type="button" aria-pressed={id === queue} onClick={() => change({ queue: id })}
              >
                {label} {counts && <span class="inbox-count">{count(counts[id])}</span>}
              </button>
            ))}
          </div>
          <div class="inbox-search">
            <TextField
              label="Search messages" hidesLabel type="search" placeholder="Search messages"
              value={search} onInput={(text) => change({ search: text })} autoComplete="off" maxLength={200}
            />
          </div>
          <Filters shown={filter} change={change} />
          <Loaded data={data}>
            {({ data: shown, next_cursor: next }) => shown.length === 0
              ? <NoRows queue={queue} isSearch={isFiltered} />
              : (
                <ul aria-label="Conversations">
                  {shown.map((row) => <Row key={row.id} row={row} isChosen={row.id === uuid} />)}
                  {next !== null && (
                    <li class="inbox-more"><Button onClick={showMore}>Show more</Button></li>
                  )}
                </ul>
              )}
          </Loaded>
          <p class="soft inbox-keys">
            <kbd>j</kbd> <kbd>k</kbd> next, previous · <kbd>t</kbd> take over · <kbd>h</kbd> hand
            back · <kbd>r</kbd> reply · <kbd>/</kbd> search
          </p>
          <AlertChoices />
        </Card>
        {uuid
          ? (
            <Place
              key={uuid} uuid={uuid} me={data.value?.me ?? null} onChanged={data.reload}
            />
          )
          : <Card class="inbox-none"><Empty icon="conversations" title="Choose a conversation." /></Card>}
      </div>
    </Page>
  );
}

function useQueue(query: Query) {
  const api = useApi();
  const key = JSON.stringify(query);
  const wanted = useRef({ key, rows: PAGE_ROWS });
  if (wanted.current.key !== key) wanted.current = { key, rows: PAGE_ROWS };
  const data = useData(`inbox/${key}`, () => load(api, query, wanted.current.rows), CHANGES);
  const showMore = (): void => {
    wanted.current.rows = (data.value?.data.length ?? 0) + PAGE_ROWS;
    data.reload();
  };
  return { data, showMore };
}

/** Loads this many rows of the queue, or all; a row that moves down meanwhile is listed once. */
async function load(api: Parley, query: Query, wanted: number): Promise<InboxPage> {
  const rows = new Map<string, InboxRow>();
  for (let cursor: string | null = null; ;) {
    const page: InboxPage = await unwrap(api.GET("/user/inbox", {
      params: { query: { ...query, ...cursor === null ? {} : { cursor } } },
    }));
    for (const row of page.data) rows.set(row.id, row);
    cursor = page.next_cursor;
    if (cursor === null || rows.size >= wanted) return { ...page, data: [...rows.values()] };
  }
}

const open = (row: InboxRow | undefined): void => {
  if (row) location.hash = `/inbox/${row.id}`;
};

function NoRows({ queue, isSearch }: { queue: Queue; isSearch: boolean }) {
  if (isSearch) return <Empty icon="search" title="Nothing in this queue matches." />;
  const titles = {
    waiting: "Nobody is waiting for a person.", mine: "You have no conversation.",
    all: "No conversation is open.",
  };
  return <Empty icon="check" title={titles[queue]} />;
}

function Row({ row, isChosen }: { row: InboxRow; isChosen: boolean }) {
  const { last_message: last, since, desk, desk_holder: holder, assistant_name: assistant } = row;
  return (
    <li>
      <a href={`#/inbox/${row.id}`} aria-current={isChosen ? "true" : undefined}>
        <span class="inbox-head">
          <strong class={row.unread ? "inbox-unread" : undefined}>
            {titleOf(row)}{row.unread && <span class="hidden-visually"> (unread)</span>}
          </strong>
          <time title={whenExactly(since)}>{when(since)}</time>
        </span>
        <span class="inbox-last" dir="auto">{last ? inOneLine(last.content) || "A file" : "Nothing has been written yet."}</span>
        <span class="inbox-foot">
          <span>{inOrder([assistant, ...row.labels.map(({ name }) => name)].join(" · "))}</span>
          {row.type === "test" && <span class="badge">Test</span>}
          {row.callback && <span class="badge">Callback</span>}
          {desk === "waiting" && <span class="badge warn">Waiting</span>}
          {desk === "person" && <span class="badge good">{holder?.name ?? "A person"}</span>}
        </span>
      </a>
    </li>
  );
}

const isTyping = ({ target }: KeyboardEvent): boolean =>
  target instanceof HTMLElement && target.closest("input, textarea, select, dialog") !== null;

/** Shortcuts of a single key, while nobody is typing. */
function useKeys(keys: Record<string, () => void>): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      const act = current.current[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
