// Deliveries as a list, of one endpoint or of all.
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { usePages, type Rows } from "#ui/dashboard/data/rows.ts";
import { when, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { Empty, Status } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { EVENT_TYPES } from "./event-types.ts";
import { shortUrl, type Delivery } from "./webhooks-data.ts";

export const NO_FILTER = { state: "", type: "", endpoint: "" };
export type Filter = typeof NO_FILTER;

const queryOf = ({ state, type, endpoint }: Filter) => ({
  ...(state ? { state: state as Delivery["state"] } : {}),
  ...(type ? { type } : {}),
  ...(endpoint ? { endpoint_id: Number(endpoint) } : {}),
});

/** Any event may cause a delivery; no event announces its outcome. */
export function useDeliveries(filter: Filter): Rows<Delivery> {
  const api = useApi();
  return usePages<Delivery>(`deliveries ${JSON.stringify(filter)}`, async (page, perPage) => {
    const { data, total } = await unwrap(api.GET("/user/webhook-deliveries", {
      params: { query: { ...queryOf(filter), page, per_page: perPage } },
    }));
    return { rows: data, total };
  }, EVENT_TYPES);
}

/** The outcome in a word, with the reason as its title. */
export function Outcome({ delivery }: { delivery: Delivery }) {
  const { state, last_error: error, last_status: status } = delivery;
  if (state === "pending" && delivery.attempts > 0) return <Status code="Trying again" tone="warn" />;
  return <span title={error ?? (status ? `HTTP ${status}` : undefined)}><Status code={state} /></span>;
}

const COLUMNS: Column<Delivery>[] = [
  {
    title: "Type", grow: 1.5,
    cell: ({ type }) => <span class="two" title={type}>{words(type)}</span>,
  },
  {
    title: "State", grow: 1.1, fits: "9.2rem",
    cell: (delivery) => <Outcome delivery={delivery} />,
  },
  {
    title: "Answer", priority: 2,
    cell: ({ last_status: status, last_error: error }) => (
      <span class="two" title={error ?? undefined}>
        {error ?? (status ? `HTTP ${status}` : "–")}
      </span>
    ),
  },
  {
    title: "Attempts", priority: 3, align: "end", fits: "6.4rem",
    cell: ({ attempts }) => attempts,
  },
  {
    title: "Created", priority: 2, align: "end", fits: "7.6rem",
    cell: ({ created_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
];
const URL_COLUMN: Column<Delivery> = {
  title: "Sent to", priority: 3,
  cell: ({ url }) => <span class="two" title={url}>{shortUrl(url)}</span>,
};

export function DeliveryTable({ rows, isFiltered, ofOne = false }: {
  rows: Rows<Delivery>; isFiltered: boolean; ofOne?: boolean;
}) {
  const [first, ...rest] = COLUMNS;
  const columns = ofOne || !first ? COLUMNS : [first, URL_COLUMN, ...rest];
  return (
    <Table
      label="Deliveries" columns={columns} rows={rows} rowKey={({ id }) => id}
      href={({ id }) => `#/webhooks/deliveries/${id}`}
      empty={isFiltered
        ? <Empty icon="search" title="No deliveries match these filters." />
        : (
          <Empty icon="webhooks" title="Nothing has been sent yet">
            {ofOne ? "“Send test” sends a first message." : <a href="#/webhooks">Set up an endpoint</a>}
          </Empty>
        )}
    />
  );
}
