// One call while it lasts: what is being said, and what an operator can do about it.
import { useEffect, useRef, useState } from "preact/hooks";
import { Needs } from "#ui/dashboard/data/rights.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { duration, timeOfDay, when, words } from "#ui/dashboard/kit/format.ts";
import { inTab } from "#ui/dashboard/kit/kept.ts";
import { Card, Facts, Failure, Notice, Page, Status } from "#ui/dashboard/kit/layout.tsx";
import { usePhone } from "#ui/dashboard/later.tsx";
import { customerOf, isFinal, isLive, type CallRecord } from "./call-state.ts";
import { AssistantLink, Values } from "./facts.tsx";
import { ListenIn } from "./listen-in.tsx";
import { Microphone, NOT_LIVE, Say, Whisper } from "./take-part.tsx";
import { Transcript } from "./transcript.tsx";
import { Transfers } from "./transfers.tsx";
import { useNow } from "#ui/dashboard/data/use-now.ts";
import { useWatch, type Watch } from "./watch-call.ts";

interface LiveCallProps {
  title: string;
  back: { href: string; label: string };
  /** As it was when the page was opened. */
  record: CallRecord;
  /** The record is final and should be loaded. */
  onOver(): void;
  /** Why the record could not be loaded. */
  error: unknown;
}

export function LiveCallView({ title, back, record, onOver, error }: LiveCallProps) {
  const watch = useWatch(record);
  const { call, lostAt } = watch;
  const phone = usePhone();
  const isOver = isFinal(call.status);
  useEffect(() => {
    if (isOver) onOver();
  }, [isOver]);
  return (
    <Page title={title} back={back} actions={<Clock watch={watch} />}>
      {lostAt && (
        <Notice tone="warn">
          The connection is lost. This is as of {timeOfDay(lostAt)}; what was missed follows.
        </Notice>
      )}
      {Boolean(watch.error) && <Failure error={watch.error} />}
      {Boolean(error) && <Failure error={error} retry={onOver} />}
      <div class="grid main-aside">
        <Card title="Transcript" class={lostAt ? "calls-stale" : ""}>
          <Transcript
            entries={call.transcript} saying={watch.saying} followsEnd
            empty={isLive(call.status) ? "Nothing has been said yet." : "Nothing was said."}
          />
        </Card>
        <div class="stack">
          <Controls watch={watch} />
          <Transfers transfers={call.transfers} />
          <Card title="About">
            <Facts rows={[
              ["Customer", phone(customerOf(call))],
              ["Assistant", <AssistantLink uuid={call.assistant_id} name={call.assistant_name} />],
              ["Assistant's number", call.assistant_phone_number && phone(call.assistant_phone_number)],
              ["Started", when(call.created_at)],
              ["Answered by", call.answered_by === "unknown" ? null : words(call.answered_by)],
            ]} />
          </Card>
          <Values title="Variables" values={call.variables} />
        </div>
      </div>
    </Page>
  );
}

function Clock({ watch: { call, answeredAt, lostAt } }: { watch: Watch }) {
  const isTalking = call.status === "in-progress";
  const now = useNow(isTalking && lostAt === null);
  return (
    <>
      {isTalking && answeredAt !== null && (
        <time class="calls-clock big" aria-label="Duration">{duration((now - answeredAt) / 1000)}</time>
      )}
      <span role="status"><Status code={call.status} /></span>
    </>
  );
}

function Controls({ watch: { call } }: { watch: Watch }) {
  const isTalking = call.status === "in-progress";
  const [isEnding, setEnding] = useState(false);
  if (!isLive(call.status)) {
    return (
      <Card title="The call is over">
        <p>The call is being evaluated; its record appears here by itself.</p>
      </Card>
    );
  }
  return (
    <Card title="Join the call">
      <div class="stack">
        {isTalking
          ? (
            <>
              <ListenIn callId={call.id} />
              <Needs right="answer">
                <Say callId={call.id} />
                <Whisper callId={call.id} />
                <Microphone callId={call.id} holder={call.desk_holder} />
              </Needs>
            </>
          )
          : <p class="soft">As soon as somebody answers, you can listen in and have the assistant say something.</p>}
        <div class="actions">
          {isTalking && <Mute callId={call.id} />}
          <Button kind="danger" needs="answer" onClick={() => setEnding(true)}>End call</Button>
        </div>
      </div>
      {isEnding && <EndCall callId={call.id} onClose={() => setEnding(false)} />}
    </Card>
  );
}

/** The server does not say whether a call is muted: what it confirmed is kept for this tab. */
const mutedKey = (callId: number): string => `parley-muted-${callId}`;

function Mute({ callId }: { callId: number }) {
  const api = useApi();
  const [isMuted, setMuted] = useState(() => inTab.getItem(mutedKey(callId)) !== null);
  const { isBusy, run } = useToastedWork();
  const toggle = (): void => run(async () => {
    const { ok } = await unwrap(api.POST("/user/calls/{id}/mute", {
      params: { path: { id: callId } }, body: { on: !isMuted },
    }));
    if (!ok) throw new Error(NOT_LIVE);
    if (isMuted) inTab.removeItem(mutedKey(callId));
    else inTab.setItem(mutedKey(callId), "yes");
    setMuted(!isMuted);
  });
  return (
    <Button needs="answer" isBusy={isBusy} onClick={toggle}>
      {isMuted ? "Unmute assistant" : "Mute assistant"}
    </Button>
  );
}

function EndCall({ callId, onClose }: { callId: number; onClose(): void }) {
  const api = useApi();
  const toasts = useToasts();
  const isOpen = useRef(true);
  useEffect(() => () => void (isOpen.current = false), []);
  const end = async (): Promise<void> => {
    const { ok } = await unwrap(api.POST("/user/calls/{id}/end", { params: { path: { id: callId } } }));
    if (!ok) toasts.notify("The call was over already.");
  };
  return (
    <Confirm title="End this call?" action="End call" onConfirm={end} onClose={() => isOpen.current && onClose()}>
      The call ends at once, even in the middle of a word.
    </Confirm>
  );
}
