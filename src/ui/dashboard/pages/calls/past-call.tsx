// One past call: its recording beside its transcript, its results, and its deletion.
import { useRef, useState } from "preact/hooks";
import type { Data } from "#ui/dashboard/data/use-data.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { duration, money, moneyExactly, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Failure, Notice, Page, Status } from "#ui/dashboard/kit/layout.tsx";
import { said } from "#ui/dashboard/kit/said.ts";
import { usePhone } from "#ui/dashboard/later.tsx";
import { customerOf, recordingPath, typeWords, type CallRecord } from "./call-state.ts";
import { DeleteCall } from "./delete.tsx";
import { Course } from "./course.tsx";
import { DeletePerson } from "#ui/dashboard/pages/conversations/delete-person.tsx";
import { AssistantLink, Values } from "./facts.tsx";
import { LatencyCard } from "./latency.tsx";
import { Player, usePlayer } from "./player.tsx";
import { QualityCard } from "./quality.tsx";
import { TimeLine } from "./time-line.tsx";
import { Transcript } from "./transcript.tsx";
import { Transfers } from "./transfers.tsx";

interface PastCallProps {
  title: string;
  back: { href: string; label: string };
  data: Data<CallRecord> & { value: CallRecord };
}

export function PastCallView({ title, back, data }: PastCallProps) {
  const { value: call, error, reload } = data;
  const [isDeleting, setDeleting] = useState(false);
  const number = call.client_phone_number;
  return (
    <Page
      title={title} back={back}
      actions={(
        <>
          <Status code={call.status} />
          <Button needs="build" onClick={() => setDeleting(true)}>Delete</Button>
          {number?.startsWith("+") && (
            <DeletePerson person={{ phone_number: number }} home="/calls" />
          )}
        </>
      )}
    >
      {Boolean(error) && <Failure error={error} retry={reload} />}
      {call.failure_reason !== null && <Notice tone="warn">{said(call.failure_reason)}</Notice>}
      <div class="grid main-aside">
        <div class="stack">
          <Talk call={call} reload={reload} />
          <TimeLine call={call} />
        </div>
        <div class="stack">
          <Card title="About"><CallFacts call={call} /></Card>
          <Transfers transfers={call.transfers} />
          <Evaluation call={call} />
          <Values title="Variables" values={call.variables} />
          <LatencyCard turns={call.latency} />
          <QualityCard quality={call.quality} />
          <Values title="Webhook response" values={call.webhook_response} />
        </div>
      </div>
      {isDeleting && <DeleteCall id={call.id} onClose={() => setDeleting(false)} />}
    </Page>
  );
}

function Talk({ call, reload }: { call: CallRecord; reload(): void }) {
  // Each response has a new link; the one that plays is kept until it is refused.
  const [source, setSource] = useState(call.recording_url);
  const isRenewing = useRef(false);
  if (isRenewing.current && call.recording_url !== source) {
    isRenewing.current = false;
    setSource(call.recording_url);
  }
  const renew = (): void => {
    isRenewing.current = true;
    reload();
  };
  const url = source ?? call.recording_url;
  return url === null
    ? (
      <>
        <Card title="Transcript">
          <Transcript entries={call.transcript_entries} empty="Nothing was said." />
        </Card>
        <Course call={call} />
      </>
    )
    : <RecordedTalk key={url} call={call} url={recordingPath(url)} renew={renew} />;
}

function RecordedTalk({ call, url, renew }: { call: CallRecord; url: string; renew(): void }) {
  const player = usePlayer(call.duration);
  const entries = call.transcript_entries;
  const heardMs = player.seconds * 1000;
  const current = player.hasBegun
    ? entries.findLast(({ start_ms: startMs }) => startMs <= heardMs)?.number ?? null
    : null;
  return (
    <>
      <Card title="Recording" class="calls-recorded">
        <Player player={player} url={url} entries={entries} renew={renew} />
        <Transcript
          entries={entries} current={current} followsCurrent={player.isPlaying}
          onSeek={({ start_ms: startMs }) => player.playFrom(startMs / 1000)} empty="Nothing was said."
        />
      </Card>
      <Course call={call} playFrom={player.playFrom} />
    </>
  );
}

const HEARD_BY: Record<NonNullable<CallRecord["hearing"]>, string> = {
  server: "This server's recogniser",
  model: "The realtime model",
  browser: "The caller's browser: this server has no recogniser for the language",
  typed: "Nobody: the caller typed, since neither server nor browser could understand speech",
  script: "Nobody: the server's own caller speaks from a script",
};

function CallFacts({ call }: { call: CallRecord }) {
  const phone = usePhone();
  return (
    <Facts rows={[
      ["Direction", typeWords(call.type)],
      ["Customer", phone(customerOf(call))],
      ["Assistant", <AssistantLink uuid={call.assistant_id} name={call.assistant_name} />],
      ["Assistant's number", call.assistant_phone_number && phone(call.assistant_phone_number)],
      ["Started", whenExactly(call.created_at)],
      ["Duration", duration(call.duration)],
      ["Answered by", call.answered_by === "unknown" ? null : words(call.answered_by)],
      ["Heard by", call.hearing && HEARD_BY[call.hearing]],
      ["End reason", call.end_reason && words(call.end_reason)],
      ["Cost", <span title={moneyExactly(call.total_cost)}>{money(call.total_cost)}</span>],
      ["Carrier’s share of the cost", money(call.carrier_cost)],
      ...(call.campaign_id === null ? [] : [[
        "Campaign", <a href={`#/campaigns/${call.campaign_id}`}>{call.campaign_name ?? call.campaign_id}</a>,
      ] as [string, preact.ComponentChildren]]),
      ...(call.lead_id === null ? [] : [[
        "Lead", <a href={`#/leads/${call.lead_id}`}>Lead {call.lead_id}</a>,
      ] as [string, preact.ComponentChildren]]),
    ]} />
  );
}

function Evaluation({ call: { evaluation, evaluation_error: error } }: { call: CallRecord }) {
  return (
    <Values
      title="Evaluation" values={evaluation}
      note={error && <Notice tone="warn">{error}</Notice>}
    />
  );
}
