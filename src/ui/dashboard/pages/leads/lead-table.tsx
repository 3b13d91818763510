// Leads as a list, of all campaigns or of one.
import type { ComponentChildren } from "preact";
import type { Rows } from "#ui/dashboard/data/rows.ts";
import { count, when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Status } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";
import { dueWords, type Lead } from "./live-leads.ts";
import { outcomeWords } from "./outcome-words.ts";

/** The first variables that are known about a person. */
const knownOf = ({ variables }: Lead): string =>
  Object.entries(variables).filter(([, text]) => text !== "").slice(0, 3)
    .map(([name, text]) => `${name}: ${text}`).join(", ");

const NUMBER: Column<Lead> = {
  title: "Number", grow: 1.91,
  cell: (lead) => <TwoLines main={formatPhone(lead.phone_number)} sub={knownOf(lead)} />,
};
const CAMPAIGN: Column<Lead> = {
  title: "Campaign", grow: 1.3, priority: 2,
  cell: ({ campaign }) => (
    <span class="two"><a href={`#/campaigns/${campaign.id}`}>{campaign.name}</a></span>
  ),
};
const REST: Column<Lead>[] = [
  { title: "Status", grow: 1.55, cell: ({ status }) => <Status code={status} /> },
  {
    title: "Last call was", priority: 3, grow: 1.27, isWords: true,
    cell: ({ last_outcome: outcome }) => outcome !== null && outcomeWords(outcome),
  },
  {
    title: "Tries", align: "end", priority: 2, grow: 0.93,
    cell: ({ call_tries: tries }) => count(tries),
  },
  {
    title: "Next try", align: "end", priority: 2,
    cell: ({ next_try_at: at }) => at && <time title={whenExactly(at)}>{dueWords(at, when)}</time>,
  },
  {
    title: "Last call", align: "end", priority: 3, grow: 0.9,
    cell: ({ last_call_id: id }) => id !== null && <a href={`#/calls/${id}`}>Call {id}</a>,
  },
  {
    title: "Added", align: "end", priority: 3, grow: 1.14,
    cell: ({ created_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
];

export function LeadTable({ rows, hasCampaign, empty }: {
  rows: Rows<Lead>;
  /** Whether the list names the campaign of each. */
  hasCampaign: boolean;
  empty: ComponentChildren;
}) {
  return (
    <Table
      label="Leads" columns={hasCampaign ? [NUMBER, CAMPAIGN, ...REST] : [NUMBER, ...REST]}
      rows={rows} rowKey={({ id }) => id} href={({ id }) => `#/leads/${id}`} empty={empty}
    />
  );
}
