// The account's campaigns: which are calling, and their progress.
import { useAssistants, useCampaigns, type Assistant, type Campaign } from "#ui/dashboard/data/lists.ts";
import { Needs } from "#ui/dashboard/data/rights.tsx";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";
import { count } from "#ui/dashboard/kit/format.ts";
import { Icon } from "#ui/dashboard/kit/icons.tsx";
import { Card, Empty, Page, Status } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { ProgressCell } from "./progress.tsx";
import { pausedUntil, useClock, whenWords } from "./words.ts";
import "./campaigns.css";

const columnsFor = (
  now: Date, assistants: Assistant[] | null,
): Column<Campaign>[] => [
  {
    title: "Name", grow: 1.15,
    cell: (campaign) => <TwoLines main={campaign.name} sub={whenWords(campaign)} />,
  },
  {
    title: "Status", fits: "9.8rem",
    cell: (campaign) => campaign.status === "in-progress" && pausedUntil(campaign, now)
      ? <Status code="paused" tone="warn" />
      : <Status code={campaign.status} />,
  },
  {
    title: "Progress", fits: "9.4rem", priority: 2,
    cell: ({ id }) => <ProgressCell campaignId={id} />,
  },
  {
    title: "Assistant", fits: "max(10.6rem, 14vw)", priority: 2,
    cell: ({ assistant_id: id }) => {
      if (assistants === null) return "…";
      const name = assistants.find((one) => one.id === id)?.name;
      return name === undefined ? "–" : (
        <span class="two"><a href={`#/assistants/${id}`}>{name}</a></span>
      );
    },
  },
  {
    title: "Calls made", align: "end", priority: 3, fits: "7.6rem",
    cell: ({ calls_made: calls }) => count(calls),
  },
];

const NewCampaignLink = () => (
  <Needs right="build">
    <a class="button main" href="#/campaigns/new"><Icon name="add" />New campaign</a>
  </Needs>
);

export function Campaigns() {
  const list = useCampaigns();
  useFocusReload(list.reload);
  const assistants = useAssistants().value;
  const now = useClock();
  return (
    <Page title="Campaigns" actions={<NewCampaignLink />}>
      <Card class="flush">
        <Table
          label="Campaigns" columns={columnsFor(now, assistants)} rowKey={({ id }) => id}
          rows={rowsOf(list.value?.toReversed() ?? null, list.error, list.reload)}
          href={({ id }) => `#/campaigns/${id}`}
          empty={(
            <Empty icon="campaigns" title="No campaigns yet">
              <p>In a campaign, an assistant calls a list of people within the hours you set.</p>
              <p><NewCampaignLink /></p>
            </Empty>
          )}
        />
      </Card>
    </Page>
  );
}
