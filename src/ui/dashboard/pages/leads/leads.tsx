// All leads, newest first, with the API's filters.
import { useState } from "preact/hooks";
import { addressOf, useAddressed } from "#ui/dashboard/data/address.ts";
import { useCampaigns } from "#ui/dashboard/data/lists.ts";
import { namedOptions } from "#ui/dashboard/kit/by-name.ts";
import { Button, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { DayFields } from "#ui/dashboard/kit/days.tsx";
import { words } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Page, Tabs } from "#ui/dashboard/kit/layout.tsx";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";
import { ImportDialog } from "./import.tsx";
import { LeadTable } from "./lead-table.tsx";
import { LEAD_STATUSES, NO_FILTER, useLeads } from "./live-leads.ts";
import { NewLead } from "./new-lead.tsx";
import "./leads.css";
import { plural } from "#ui/dashboard/kit/texts.ts";

const ANY = { value: "", label: "Any" };

export const TABS = [
  { id: "leads", href: "#/leads", label: "Leads" },
  { id: "blocked", href: "#/leads/blocked", label: "Blocked numbers" },
];

const ALL = { campaign: "", status: "", phone: "", from: "", to: "" };
type Filter = typeof ALL;

export function Leads() {
  const [filter, setFilter] = useAddressed("leads", ALL);
  const [dialog, setDialog] = useState<"new" | "import" | null>(null);
  const rows = useLeads({ ...NO_FILTER, ...useSettled(filter) });
  const isFiltered = addressOf(filter) !== "";
  const close = (): void => setDialog(null);
  return (
    <Page
      title="Leads"
      actions={(
        <>
          <Button needs="build" icon="upload" onClick={() => setDialog("import")}>Import leads</Button>
          <Button kind="main" needs="answer" icon="add" onClick={() => setDialog("new")}>New lead</Button>
        </>
      )}
    >
      <Tabs tabs={TABS} current="leads" />
      <Card class="flush leads-list">
        <Filters filter={filter} change={(part) => setFilter({ ...filter, ...part })}>
          {isFiltered && (
            <Button kind="quiet" icon="close" onClick={() => setFilter(ALL)}>
              Clear filters
            </Button>
          )}
        </Filters>
        {rows.count !== null && rows.count > 0 && (
          <p class="soft leads-about" role="status">
            {plural(rows.count, "{count} lead", "{count} leads")}
          </p>
        )}
        <LeadTable
          rows={rows} hasCampaign
          empty={isFiltered ? <Empty icon="search" title="No leads match these filters" /> : (
            <Empty icon="leads" title="No leads yet">
              Leads are the people a campaign calls. Add them one by one or import a CSV or XLSX
              file.
            </Empty>
          )}
        />
      </Card>
      {dialog === "new" && (
        <NewLead campaignId={filter.campaign} onDone={rows.reload} onClose={close} />
      )}
      {dialog === "import" && (
        <ImportDialog campaignId={filter.campaign} onDone={rows.reload} onClose={close} />
      )}
    </Page>
  );
}

function Filters({ filter, change, children }: {
  filter: Filter; change(part: Partial<Filter>): void; children: preact.ComponentChildren;
}) {
  const campaigns = useCampaigns().value ?? [];
  return (
    <div class="filters leads-filters" role="search" aria-label="Filter leads">
      <SelectField
        label="Campaign" value={filter.campaign} onInput={(campaign) => change({ campaign })}
        options={[ANY, ...namedOptions(campaigns)]}
      />
      <SelectField
        label="Status" value={filter.status} onInput={(status) => change({ status })}
        options={[ANY, ...LEAD_STATUSES.map((value) => ({ value, label: words(value) }))]}
      />
      <TextField
        label="Phone number" type="tel" value={filter.phone} onInput={(phone) => change({ phone })}
        placeholder="Part of the number" autoComplete="off" maxLength={64}
      />
      <DayFields days={filter} change={change} />
      {children}
    </div>
  );
}
