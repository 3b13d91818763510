// The account's money: the balance, every entry behind it, and the proof that they add up.
import type { paths } from "#client/client.ts";
import { useAddressed } from "#ui/dashboard/data/address.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { usePages } from "#ui/dashboard/data/rows.ts";
import { Button, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { DayFields, daysQuery } from "#ui/dashboard/kit/days.tsx";
import { count, money, moneyExactly, when, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Figure, Loaded, Page } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { commandOf } from "#ui/dashboard/kit/texts.ts";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";
import { nameOf, signed } from "./references.ts";
import { Verification } from "./verification.tsx";
import "./ledger.css";

type Entry = paths["/user/ledger"]["get"]["responses"][200]["content"]["application/json"]["data"][number];
type Kind = Entry["kind"];

const KINDS: Kind[] = ["credit", "message", "call", "number"];
const NO_FILTER = { kind: "", reference: "", from: "", to: "" };
type Filter = typeof NO_FILTER;
const CHANGES = ["balance_changed"];

const COLUMNS: Column<Entry>[] = [
  {
    title: "What", grow: 1.3, isWords: true,
    cell: ({ reference }) => <Reference text={reference} />,
  },
  {
    title: "When", priority: 2,
    cell: ({ created_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
  { title: "Kind", priority: 3, grow: 0.7, cell: ({ kind }) => words(kind) },
  {
    title: "Amount", align: "end",
    cell: ({ amount }) => (
      <span class={amount > 0 ? "ledger-in" : undefined}>{signed(amount)}</span>
    ),
  },
  {
    title: "Balance after", align: "end", priority: 2,
    cell: ({ balance_after: balance }) => moneyExactly(balance),
  },
  {
    title: "Entry", align: "end", priority: 3, grow: 0.7,
    cell: ({ number, hash }) => <span class="soft" title={`Hash ${hash}`}>{count(number)}</span>,
  },
];

function Reference({ text }: { text: string }) {
  const { name, href } = nameOf(text);
  return href
    ? <a class="ledger-ref" href={href} title={text}>{name}</a>
    : <span class="two" title={text}>{name}</span>;
}

const queryOf = ({ kind, reference, ...days }: Filter) => ({
  ...(kind ? { kind: kind as Kind } : {}),
  ...(reference.trim() ? { reference: reference.trim() } : {}),
  ...daysQuery(days),
});

export function Ledger() {
  const api = useApi();
  const [filter, setFilter] = useAddressed("ledger", NO_FILTER);
  const settled = useSettled(filter);
  const rows = usePages<Entry>(`ledger ${JSON.stringify(settled)}`, async (page, perPage) => {
    const { data, total } = await unwrap(api.GET("/user/ledger", {
      params: { query: { ...queryOf(settled), page, per_page: perPage } },
    }));
    return { rows: data, total };
  }, CHANGES);
  const isFiltered = Object.values(filter).some(Boolean);
  const clear = () => setFilter(NO_FILTER);
  return (
    <Page title="Ledger">
      <div class="grid two">
        <Balance />
        <Verification />
      </div>
      <Card class="flush">
        <Filters filter={filter} change={(part) => setFilter({ ...filter, ...part })}>
          {isFiltered && <Button kind="quiet" icon="close" onClick={clear}>Clear filters</Button>}
        </Filters>
        <Table
          label="Entries, newest first" columns={COLUMNS} rows={rows} rowKey={({ number }) => number}
          empty={isFiltered
            ? <Empty icon="search" title="No entries match these filters." />
            : (
              <Empty icon="ledger" title="Nothing has been entered yet.">
                Money is added on the page <a href="#/money">Money</a>, or by the operator
                with <code>{commandOf("balance add")}</code>.
              </Empty>
            )}
        />
      </Card>
    </Page>
  );
}

function Balance() {
  const api = useApi();
  const data = useData("balance", () => unwrap(api.GET("/user/balance")), CHANGES);
  return (
    <Card title="Balance">
      <Loaded data={data}>
        {({ balance, reserved }) => (
          <dl class="figures-row">
            <Figure label="Balance" value={money(balance)} note="of all entries" />
            <Figure label="Reserved" value={money(reserved)} note="for what is in progress" />
            <Figure label="Free to use" value={money(balance - reserved)} />
          </dl>
        )}
      </Loaded>
    </Card>
  );
}

function Filters({ filter, change, children }: {
  filter: Filter; change(part: Partial<Filter>): void; children: preact.ComponentChildren;
}) {
  return (
    <div class="filters" role="search" aria-label="Filter entries">
      <SelectField
        label="Kind" value={filter.kind} onInput={(kind) => change({ kind })}
        options={[
          { value: "", label: "Any" },
          ...KINDS.map((value) => ({ value, label: words(value) })),
        ]}
      />
      <TextField
        label="Reference" type="search" value={filter.reference} maxLength={255}
        onInput={(reference) => change({ reference })} placeholder="call:12 or number:*"
      />
      <DayFields days={filter} change={change} />
      {children}
    </div>
  );
}
