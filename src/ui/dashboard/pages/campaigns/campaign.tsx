// One campaign: whether it calls, how far it is, its leads as they change.
import { useState } from "preact/hooks";
import type { PageProps } from "#ui/dashboard/page.ts";
import { useAssistants, type Campaign } from "#ui/dashboard/data/lists.ts";
import { useEvents } from "#ui/dashboard/data/live.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { count, timeOfDay, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Facts, Loaded, Notice, Page } from "#ui/dashboard/kit/layout.tsx";
import { useCalmly } from "#ui/dashboard/pages/leads/calmly.ts";
import { ImportDialog } from "#ui/dashboard/pages/leads/import.tsx";
import { LeadTable } from "#ui/dashboard/pages/leads/lead-table.tsx";
import { NO_FILTER, useLeads } from "#ui/dashboard/pages/leads/live-leads.ts";
import { NewLead } from "#ui/dashboard/pages/leads/new-lead.tsx";
import { Actions } from "./actions.tsx";
import { useCounts } from "./counts.ts";
import { EditCampaign, NewCampaign } from "./edit-campaign.tsx";
import { ProgressCard } from "./progress.tsx";
import { daysWords, hoursWords, isOpenAt, pausedUntil, useClock, useReason } from "./words.ts";
import "./campaigns.css";

const CALL_EVENTS = ["lead_status_changed"];
const RELOAD_MS = 10_000;
const BACK = { href: "#/campaigns", label: "Campaigns" };

export function CampaignPage({ params: { id, tab } }: PageProps) {
  return id === "new" ? <NewCampaign /> : <One key={id} id={Number(id)} isEditing={tab === "edit"} />;
}

function One({ id, isEditing }: { id: number; isEditing: boolean }) {
  const api = useApi();
  const data = useData(`campaign ${id}`, () =>
    unwrap(api.GET("/user/campaigns/{id}", { params: { path: { id } } })),
  ["campaign_status_changed"]);
  const { value: campaign } = data;
  // How many calls were made has no event of its own.
  useEvents(CALL_EVENTS, useCalmly(data.reload, RELOAD_MS));
  if (campaign && isEditing) return <EditCampaign campaign={campaign} onSaved={data.set} />;
  return (
    <Page
      title={campaign?.name ?? "Campaign"} back={BACK}
      actions={campaign && <Actions campaign={campaign} onChange={data.reload} />}
    >
      <Loaded data={data}>{(found) => <Opened campaign={found} />}</Loaded>
    </Page>
  );
}

function Opened({ campaign }: { campaign: Campaign }) {
  const { id } = campaign;
  const [status, setStatus] = useState("");
  const [dialog, setDialog] = useState<"new" | "import" | null>(null);
  const counts = useCounts(id);
  const rows = useLeads({ ...NO_FILTER, campaign: String(id), status });
  const close = (): void => setDialog(null);
  const reload = (): void => {
    rows.reload();
    counts.reload();
  };
  const adding = { campaignId: String(id), onDone: reload, onClose: close };
  return (
    <>
      <State campaign={campaign} />
      <div class="grid two">
        <ProgressCard counts={counts} status={status} onStatus={setStatus} />
        <Settings campaign={campaign} />
      </div>
      <Card
        class="flush leads-list" title={status ? `Leads: ${words(status).toLowerCase()}` : "Leads"}
        actions={(
          <>
            {status && <Button kind="quiet" icon="close" onClick={() => setStatus("")}>Show all</Button>}
            <Button icon="upload" onClick={() => setDialog("import")}>Import CSV</Button>
            <Button icon="add" onClick={() => setDialog("new")}>Add lead</Button>
          </>
        )}
      >
        <LeadTable
          rows={rows} hasCampaign={false}
          empty={status ? <Empty icon="search" title="No lead is in this state" /> : (
            <Empty icon="leads" title="No leads yet">
              Add the people to call one by one, or import a CSV file.
            </Empty>
          )}
        />
      </Card>
      {dialog === "new" && <NewLead {...adding} />}
      {dialog === "import" && <ImportDialog {...adding} />}
    </>
  );
}

/** Why nobody is called just now, when that needs telling. */
function State({ campaign }: { campaign: Campaign }) {
  const now = useClock();
  const reason = useReason()(campaign.id);
  const until = pausedUntil(campaign, now);
  const isRunning = campaign.status === "in-progress";
  if (isRunning && until) {
    return (
      <Notice tone="warn">
        <span>
          The carrier failed several times in a row: nobody is called until{" "}
          <time title={whenExactly(campaign.paused_until ?? "")}>{timeOfDay(until)}</time>, then it
          goes on by itself.
        </span>
      </Notice>
    );
  }
  if (isRunning && !isOpenAt(campaign, now)) {
    return (
      <Notice>
        <span>It is outside its hours now: nobody is called until they begin.</span>
      </Notice>
    );
  }
  if (!isRunning && reason) {
    return (
      <Notice tone={campaign.status === "completed" ? "good" : "warn"}>
        <span>{reason}</span>
      </Notice>
    );
  }
  return null;
}

function Settings({ campaign }: { campaign: Campaign }) {
  const { assistant_id: id, goal_completion_variable: goal } = campaign;
  const assistants = useAssistants().value;
  const name = assistants?.find((one) => one.id === id)?.name;
  const again = [
    ...(campaign.retry_on_voicemail ? ["answering machines"] : []),
    ...(campaign.retry_on_goal_incomplete ? [`until ${goal ?? "the goal"} is reached`] : []),
  ];
  return (
    <Card title="Settings">
      <Facts
        rows={[
          ["Assistant", name === undefined
            ? assistants && "Deleted"
            : <a key="assistant" href={`#/assistants/${id}`}>{name}</a>],
          ["Days", daysWords(campaign.allowed_days)],
          ["Hours", `${hoursWords(campaign)}, ${campaign.timezone.replaceAll("_", " ")}`],
          ["Calls at a time", count(campaign.max_calls_in_parallel)],
          ["Tries again", `${campaign.max_retries} times, every ${campaign.retry_interval} min`],
          ["Also tries again", again.length > 0 ? words(again.join(", ")) : "–"],
          ["Calls from", campaign.phone_number_ids.length === 0
            ? "The assistant’s number"
            : `${campaign.phone_number_ids.length} numbers in turn`],
          ["Calls made", count(campaign.calls_made)],
        ]}
      />
    </Card>
  );
}
