// The account's knowledgebases: what assistants can look things up in.
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";
import { Button, TextField } from "#ui/dashboard/kit/controls.tsx";
import { count, when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Page, Status } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { NameDialog } from "./name-form.tsx";
import { CHANGES, type Knowledgebase } from "./types.ts";
import "./knowledge.css";

const COLUMNS: Column<Knowledgebase>[] = [
  {
    title: "Name", grow: 2.4,
    cell: ({ name, description }) => <TwoLines main={name} sub={description} />,
  },
  { title: "Status", fits: "9.8rem", cell: ({ status }) => <Status code={status} /> },
  {
    title: "Documents", align: "end", priority: 2, fits: "7.6rem",
    cell: ({ documents_count: documents }) => count(documents),
  },
  {
    title: "Assistants", align: "end", priority: 2, fits: "7.6rem",
    cell: ({ assistants_count: assistants }) => count(assistants),
  },
  {
    title: "Updated", align: "end", priority: 3, fits: "7.6rem",
    cell: ({ updated_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
];

export function Knowledgebases() {
  const api = useApi();
  const [, navigate] = useLocation();
  const [isCreating, setCreating] = useState(false);
  const [search, setSearch] = useState("");
  const list = useData(
    "knowledgebases", async () => (await unwrap(api.GET("/user/knowledgebases"))).data, CHANGES);
  useFocusReload(list.reload);
  const wanted = search.trim().toLowerCase();
  const found = list.value?.filter(({ name, description }) =>
    `${name} ${description ?? ""}`.toLowerCase().includes(wanted)) ?? null;
  const isNone = list.value?.length === 0;
  const add = (
    <Button kind="main" needs="build" icon="add" onClick={() => setCreating(true)}>New knowledgebase</Button>
  );
  return (
    <Page title="Knowledge" actions={add}>
      <Card class="flush">
        {!isNone && (
          <div class="filters" role="search" aria-label="Knowledgebases">
            <TextField
              label="Search" type="search" value={search} onInput={setSearch}
              placeholder="Name, description"
            />
          </div>
        )}
        <Table
          label="Knowledgebases" columns={COLUMNS} rows={rowsOf(found, list.error, list.reload)}
          rowKey={({ id }) => id} href={({ id }) => `#/knowledgebases/${id}`}
          empty={isNone ? (
            <Empty icon="knowledge" title="No knowledge yet">
              <p>Give assistants your documents and web pages to look things up in.</p>
            </Empty>
          ) : <Empty icon="search" title="No matching knowledgebases" />}
        />
      </Card>
      {isCreating && (
        <NameDialog
          title="New knowledgebase" submit="Create" onClose={() => setCreating(false)}
          onSave={async (body) => {
            const { data } = await unwrap(api.POST("/user/knowledgebases", { body }));
            navigate(`/knowledgebases/${data.id}`);
          }}
        />
      )}
    </Page>
  );
}
