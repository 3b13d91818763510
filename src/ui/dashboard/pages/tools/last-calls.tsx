// The last calls that assistants made of a tool.
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import type { paths } from "#client/client.ts";
import { count, when } from "#ui/dashboard/kit/format.ts";
import { Card, Empty } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";

type Call =
  paths["/user/tools/{id}/calls"]["get"]["responses"][200]["content"]["application/json"][number];

const STATES = { answered: "Answered", failed: "Failed", unknown: "Unknown" } as const;
const SHOWN_CHARS_MAX = 200;

const COLUMNS: Column<Call>[] = [
  { title: "When", grow: 1.2, cell: ({ created_at }) => when(created_at) },
  { title: "Outcome", grow: 1.15, cell: ({ state }) => STATES[state] },
  {
    title: "Result", grow: 2.1, priority: 2,
    cell: ({ result }) => result === null
      ? "–"
      : <code>{JSON.stringify(result).slice(0, SHOWN_CHARS_MAX)}</code>,
  },
  {
    title: "Duration", align: "end", grow: 1.25,
    cell: ({ duration_ms: ms }) => ms === null ? "–" : `${count(ms)} ms`,
  },
];

export function LastCalls({ id }: { id: number }) {
  const api = useApi();
  const calls = useData(`tool calls ${id}`, () =>
    unwrap(api.GET("/user/tools/{id}/calls", { params: { path: { id } } })));
  return (
    <Card title="Last calls" class="flush">
      <Table
        label="Last calls" columns={COLUMNS} rows={rowsOf(calls.value, calls.error, calls.reload)}
        rowKey={({ id: number }) => number}
        empty={<Empty icon="tools" title="No assistant has called it yet" />}
      />
    </Card>
  );
}
