// All webhook deliveries, newest first, and their outcomes.
import { addressOf, useAddressed } from "#ui/dashboard/data/address.ts";
import { Button, SelectField } from "#ui/dashboard/kit/controls.tsx";
import { words } from "#ui/dashboard/kit/format.ts";
import { Card, Page, Tabs } from "#ui/dashboard/kit/layout.tsx";
import { DeliveryTable, NO_FILTER, useDeliveries, type Filter } from "./delivery-table.tsx";
import { DELIVERY_TYPES, PURPOSES } from "./event-types.ts";
import { shortUrl, TABS, useEndpoints, type Endpoint } from "./webhooks-data.ts";
import "./webhooks.css";

const STATES = ["pending", "delivered", "dead"];

export function Deliveries() {
  const endpoints = useEndpoints();
  const [filter, setFilter] = useAddressed("deliveries", NO_FILTER);
  const rows = useDeliveries(filter);
  const isFiltered = addressOf(filter) !== "";
  return (
    <Page
      title="Webhooks"
      actions={<Button icon="again" onClick={rows.reload}>Refresh</Button>}
    >
      <Tabs tabs={TABS} current="deliveries" />
      <Card class="flush">
        <Filters
          filter={filter} endpoints={endpoints.value ?? []}
          change={(part) => setFilter({ ...filter, ...part })}
        >
          {isFiltered && (
            <Button kind="quiet" icon="close" onClick={() => setFilter(NO_FILTER)}>Clear filters</Button>
          )}
        </Filters>
        <DeliveryTable rows={rows} isFiltered={isFiltered} />
      </Card>
    </Page>
  );
}

const nameOf = ({ purpose, url }: Endpoint): string =>
  purpose === "account" ? shortUrl(url) : `${PURPOSES[purpose]}: ${shortUrl(url)}`;

function Filters({ filter, endpoints, change, children }: {
  filter: Filter; endpoints: Endpoint[]; change(part: Partial<Filter>): void;
  children: preact.ComponentChildren;
}) {
  const any = { value: "", label: "Any" };
  return (
    <div class="filters" role="search" aria-label="Filter deliveries">
      <SelectField
        label="State" value={filter.state} onInput={(state) => change({ state })}
        options={[any, ...STATES.map((value) => ({ value, label: words(value) }))]}
      />
      <SelectField
        label="Type" value={filter.type} onInput={(type) => change({ type })}
        options={[any, ...DELIVERY_TYPES.map((value) => ({ value, label: words(value) }))]}
      />
      <SelectField
        label="Endpoint" value={filter.endpoint} onInput={(endpoint) => change({ endpoint })}
        options={[any, ...endpoints.map((one) => ({ value: String(one.id), label: nameOf(one) }))]}
      />
      {children}
    </div>
  );
}
