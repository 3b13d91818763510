// The account's tools: addresses that assistants may call while they answer.
import { useAddressed } from "#ui/dashboard/data/address.ts";
import { Needs } from "#ui/dashboard/data/rights.tsx";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";
import { TextField } from "#ui/dashboard/kit/controls.tsx";
import { when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Icon } from "#ui/dashboard/kit/icons.tsx";
import { Card, Empty, Page } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import type { Tool } from "./tool-fields.ts";
import "./tools.css";

const NO_FILTER = { search: "" };

const COLUMNS: Column<Tool>[] = [
  {
    title: "Name", grow: 1.2,
    cell: ({ name, problem }) => problem === null
      ? <code class="two">{name}</code>
      : <span class="two" title={problem}><code>{name}</code> cannot be called</span>,
  },
  {
    title: "Description", priority: 2,
    cell: ({ description }) => <span class="two">{description}</span>,
  },
  {
    title: "Calls", grow: 1.6,
    cell: ({ method, endpoint }) => (
      <span class="two" title={endpoint}><b>{method}</b> {endpoint}</span>
    ),
  },
  {
    title: "Parameters", priority: 3, fits: "7rem", align: "end",
    cell: ({ schema }) => schema.length,
  },
  {
    title: "Updated", priority: 2, fits: "7.6rem", align: "end",
    cell: ({ updated_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
];

const NewTool = () => (
  <Needs right="build">
    <a class="button main" href="#/tools/new"><Icon name="add" />New tool</a>
  </Needs>
);

export function Tools() {
  const api = useApi();
  const list = useData("tools", () => unwrap(api.GET("/user/tools")));
  useFocusReload(list.reload);
  const [{ search }, setFilter] = useAddressed("tools", NO_FILTER);
  const wanted = search.trim().toLowerCase();
  const found = list.value?.filter(({ name, description, endpoint }) =>
    `${name} ${description} ${endpoint}`.toLowerCase().includes(wanted)) ?? null;
  const isNew = list.value?.length === 0;
  return (
    <Page title="Tools" actions={<NewTool />}>
      <Card class="flush">
        {!isNew && (
          <div class="filters" role="search" aria-label="Tools">
            <TextField
              label="Search" type="search" value={search} onInput={(text) => setFilter({ search: text })}
              placeholder="Name, description, address"
            />
          </div>
        )}
        <Table
          label="Tools" columns={COLUMNS} rows={rowsOf(found, list.error, list.reload)}
          rowKey={({ id }) => id} href={({ id }) => `#/tools/${id}`}
          empty={isNew ? (
            <Empty icon="tools" title="No tools yet">
              <p>
                A tool lets assistants query your own systems: the status of an order, a free table.
              </p>
              <p><NewTool /></p>
            </Empty>
          ) : <Empty icon="search" title="No matching tools" />}
        />
      </Card>
    </Page>
  );
}
