// Where events of the account are sent: all endpoints, with those of the assistants' webhooks.
import { useState } from "preact/hooks";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Page, Status, Tabs } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { EndpointDialog } from "./endpoint-form.tsx";
import { eventsInShort, PURPOSES } from "./event-types.ts";
import { Secret } from "./secret.tsx";
import { shortUrl, TABS, useEndpoints, type Endpoint } from "./webhooks-data.ts";
import "./webhooks.css";

export function EndpointStatus({ endpoint: { status, failing_since: since } }: {
  endpoint: Endpoint;
}) {
  return status === "active" && since !== null
    ? <Status code="Failing" tone="warn" />
    : <Status code={status} />;
}

const ACCOUNT: Column<Endpoint>[] = [
  {
    title: "URL", grow: 1.4,
    cell: ({ url }) => <span class="two" title={url}>{shortUrl(url)}</span>,
  },
  { title: "Status", fits: "8.6rem", cell: (endpoint) => <EndpointStatus endpoint={endpoint} /> },
  {
    title: "Events", priority: 2, fits: "10rem",
    cell: ({ events }) => (
      <span class="two" title={events.join(", ")}>{eventsInShort(events)}</span>
    ),
  },
  {
    title: "Failing since", priority: 2, fits: "8rem",
    cell: ({ failing_since: since }) => <time>{when(since)}</time>,
  },
  {
    title: "Created", priority: 3, fits: "7.6rem", align: "end",
    cell: ({ created_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
];

export function Webhooks() {
  const data = useEndpoints();
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<Endpoint | null>(null);
  const own = data.value?.filter(({ purpose }) => purpose === "account") ?? null;
  const assistants = data.value?.filter(({ purpose }) => purpose !== "account") ?? [];
  const add = <Button kind="main" needs="build" icon="add" onClick={() => setCreating(true)}>New endpoint</Button>;
  return (
    <Page title="Webhooks" actions={add}>
      <Tabs tabs={TABS} current="endpoints" />
      <Card class="flush">
        <Table
          label="Endpoints" columns={ACCOUNT} rows={rowsOf(own, data.error, data.reload)}
          rowKey={({ id }) => id} href={({ id }) => `#/webhooks/endpoints/${id}`}
          empty={(
            <Empty icon="webhooks" title="No endpoints yet">
              <p>Your server receives calls, conversations and payments: signed, in order.</p>
              {add}
            </Empty>
          )}
        />
      </Card>
      <OfAssistants endpoints={assistants} />
      {isCreating && (
        <EndpointDialog
          onClose={() => setCreating(false)}
          onSaved={(endpoint) => {
            setCreating(false);
            setCreated(endpoint);
            data.reload();
          }}
        />
      )}
      {created && <Secret endpoint={created} onClose={() => setCreated(null)} />}
    </Page>
  );
}

/** They are set up at the assistant; this shows their states. */
function OfAssistants({ endpoints }: { endpoints: Endpoint[] }) {
  const { value: assistants } = useAssistants();
  if (endpoints.length === 0) {
    return (
      <p class="soft">
        Webhooks of one assistant, after a call, after a conversation and before an inbound call,
        are set up on <a href="#/assistants">the assistant’s page</a>.
      </p>
    );
  }
  const nameOf = (id: number | null): string =>
    assistants?.find((assistant) => assistant.id === id)?.name ?? `Assistant ${id}`;
  const columns: Column<Endpoint>[] = [
    { title: "Sent", grow: 1.4, cell: ({ purpose }) => PURPOSES[purpose] },
    { title: "Status", cell: (endpoint) => <EndpointStatus endpoint={endpoint} /> },
    {
      title: "Assistant", priority: 2,
      cell: ({ assistant_id: id }) => (
        <span class="two"><a href={`#/assistants/${id}`}>{nameOf(id)}</a></span>
      ),
    },
    {
      title: "URL", priority: 2, grow: 2,
      cell: ({ url }) => <span class="two" title={url}>{shortUrl(url)}</span>,
    },
  ];
  return (
    <Card title="Of assistants" class="flush">
      <Table
        label="Assistants’ endpoints" columns={columns} rows={rowsOf(endpoints)}
        rowKey={({ id }) => id} href={({ id }) => `#/webhooks/endpoints/${id}`} empty={null}
      />
    </Card>
  );
}
