// One campaign: whether it is calling, its progress, and its leads as they change.
import { useEffect, useState } from "preact/hooks";
import type { PageProps } from "#ui/dashboard/page.ts";
import { useAssistants, type Campaign } from "#ui/dashboard/data/lists.ts";
import { useEvents } from "#ui/dashboard/data/live.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { count, timeOfDay, when, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { t } from "#ui/dashboard/kit/texts.ts";
import { Card, Empty, Facts, Loaded, Notice, Page } from "#ui/dashboard/kit/layout.tsx";
import { useCalmly } from "#ui/dashboard/data/use-calmly.ts";
import { ImportDialog } from "#ui/dashboard/pages/leads/import.tsx";
import { LeadTable } from "#ui/dashboard/pages/leads/lead-table.tsx";
import { NO_FILTER, useLeads } from "#ui/dashboard/pages/leads/live-leads.ts";
import { outcomeWords } from "#ui/dashboard/pages/leads/outcome-words.ts";
import { NewLead } from "#ui/dashboard/pages/leads/new-lead.tsx";
import { Actions } from "./actions.tsx";
import { EditCampaign, NewCampaign } from "./edit-campaign.tsx";
import { CallingCard, ChartsCard, FiguresCard, ReasonKeys } from "./figure-cards.tsx";
import { countsOf, useFigures, type Width } from "./figures.ts";
import { ProgressCard } from "./progress.tsx";
import { RetryButton } from "./retry.tsx";
import { daysWords, hoursWords, pausedUntil, REASONS, useClock } from "./words.ts";
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
  // No event announces the number of calls made.
  useEvents(CALL_EVENTS, useCalmly(data.reload, RELOAD_MS));
  useHours(campaign?.status === "in-progress", data.reload);
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

const HOURS_MS = 60_000;

/** Hours begin and end while the page is open, in the leads' time zones, which the server knows. */
function useHours(isRunning: boolean, reload: () => void): void {
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(reload, HOURS_MS);
    return () => clearInterval(timer);
  }, [isRunning, reload]);
}

interface Shown {
  status: string;
  outcome: string;
  isDue: boolean;
}

const ALL: Shown = { status: "", outcome: "", isDue: false };

function Opened({ campaign }: { campaign: Campaign }) {
  const { id, goal_completion_variable: goal } = campaign;
  const [by, setWidth] = useState<Width>("hour");
  const [shown, setShown] = useState(ALL);
  const figures = useFigures(id, by);
  const counts = {
    ...figures, value: figures.value && countsOf(figures.value), set: () => undefined,
  };
  return (
    <>
      <State campaign={campaign} />
      <div class="grid two">
        <ProgressCard
          counts={counts} status={shown.status}
          onStatus={(status) => setShown({ ...ALL, status })}
        >
          <ReasonKeys
            data={figures} outcome={shown.outcome} isDue={shown.isDue}
            onOutcome={(outcome) => setShown({ ...ALL, outcome })}
            onDue={(isDue) => setShown({ ...ALL, isDue })}
          />
        </ProgressCard>
        <CallingCard data={figures} />
        <FiguresCard data={figures} hasGoal={goal !== null} />
        <Settings campaign={campaign} />
      </div>
      <ChartsCard data={figures} by={by} onWidth={setWidth} campaign={campaign} />
      <Leads
        campaignId={id} shown={shown} onAll={() => setShown(ALL)} onChange={figures.reload}
      />
    </>
  );
}

function titleOf({ status, outcome, isDue }: Shown): string {
  const part = isDue ? "Due" : status ? words(status) : outcome && outcomeWords(outcome);
  return part ? `${t("Leads")}: ${part.toLowerCase()}` : t("Leads");
}

function Leads({ campaignId: id, shown, onAll, onChange }: {
  campaignId: number; shown: Shown; onAll(): void; onChange(): void;
}) {
  const [dialog, setDialog] = useState<"new" | "import" | null>(null);
  const rows = useLeads({ ...NO_FILTER, ...shown, campaign: String(id), isByActivity: true });
  const isNarrowed = shown !== ALL && Object.values(shown).some(Boolean);
  const reload = (): void => {
    rows.reload();
    onChange();
  };
  const adding = { campaignId: String(id), onDone: reload, onClose: () => setDialog(null) };
  return (
    <>
      <Card
        class="flush leads-list" title={titleOf(shown)}
        actions={(
          <>
            {isNarrowed && <Button kind="quiet" icon="close" onClick={onAll}>Show all</Button>}
            {shown.outcome && (
              <RetryButton campaignId={id} outcome={shown.outcome} onDone={reload} />
            )}
            <Button needs="build" icon="upload" onClick={() => setDialog("import")}>Import leads</Button>
            <Button needs="answer" icon="add" onClick={() => setDialog("new")}>Add lead</Button>
          </>
        )}
      >
        <LeadTable
          rows={rows} hasCampaign={false}
          empty={isNarrowed ? <Empty icon="search" title="No leads have this status" /> : (
            <Empty icon="leads" title="No leads yet">
              Add the people to call one by one, or import a CSV or XLSX file.
            </Empty>
          )}
        />
      </Card>
      {dialog === "new" && <NewLead {...adding} />}
      {dialog === "import" && <ImportDialog {...adding} />}
    </>
  );
}

/** Explains why nobody is being called, where that is not obvious. */
function State({ campaign }: { campaign: Campaign }) {
  const now = useClock();
  const { pause } = campaign;
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
  if (isRunning && pause?.reason === "hours") {
    return (
      <Notice>
        <span>
          It is outside its hours now: nobody is called until they begin
          {pause.until !== null && <> (<Moment at={pause.until} />)</>}.
        </span>
      </Notice>
    );
  }
  if (campaign.status === "completed") {
    return <Notice tone="good"><span>All leads are done.</span></Notice>;
  }
  return pause === null || isRunning ? null : <Stopped pause={pause} />;
}

const Moment = ({ at }: { at: string }) => <time title={whenExactly(at)}>{when(at)}</time>;

/** Why, by whom and since when, as far as that is known. */
function Stopped({ pause }: { pause: NonNullable<Campaign["pause"]> }) {
  const { reason, since, by, note } = pause;
  return (
    <Notice tone="warn">
      <span class="campaigns-pause">
        <span>{REASONS[reason] ?? words(reason)}</span>
        {note !== null && <q>{note}</q>}
        <small>
          {by}{by !== null && since !== null && ", "}{since !== null && <Moment at={since} />}
        </small>
      </span>
    </Notice>
  );
}

function Settings({ campaign }: { campaign: Campaign }) {
  const { assistant_id: id, goal_completion_variable: goal } = campaign;
  const assistants = useAssistants().value;
  const name = assistants?.find((one) => one.id === id)?.name;
  const again = [
    ...(campaign.retry_on_voicemail ? [t("answering machines")] : []),
    ...(campaign.retry_on_goal_incomplete ? [t(`until ${goal ?? "the goal"} is reached`)] : []),
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
          ["Retries", t(`${campaign.max_retries} times, every ${campaign.retry_interval} min`)],
          ["Also retries", again.length > 0 ? words(again.join(", ")) : "–"],
          ["Calls from", campaign.phone_number_ids.length === 0
            ? "The assistant’s number"
            : t(`${campaign.phone_number_ids.length} numbers in turn`)],
          ["Calls made", count(campaign.calls_made)],
        ]}
      />
    </Card>
  );
}
