// One conversation, live: its messages, whether the AI answers, and facts about it.
import { useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork } from "#ui/dashboard/kit/dialog.tsx";
import { money, timeOfDay, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Failure, Notice, Page, Skeleton } from "#ui/dashboard/kit/layout.tsx";
import type { PageProps } from "#ui/dashboard/page.ts";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { Answers, usagesOf, useRecord } from "./answers.tsx";
import { AssistantLink, Values } from "#ui/dashboard/pages/calls/facts.tsx";
import { titleOf, typeName, type Summary } from "./conversations.tsx";
import { DeleteConversation } from "./delete.tsx";
import { DeletePerson } from "./delete-person.tsx";
import { Messages } from "./messages.tsx";
import { Suggest } from "./suggest.tsx";
import { useWatch, type Watch } from "./watch-conversation.ts";
import "./conversations.css";

const EVALUATED = ["conversation_evaluated", "conversation_rated"];
const BACK = { href: "#/conversations", label: "Conversations" };

export function ConversationPage({ params }: PageProps) {
  const uuid = params.uuid ?? "";
  return <OneConversation key={uuid} uuid={uuid} />;
}

function OneConversation({ uuid }: { uuid: string }) {
  const api = useApi();
  const watch = useWatch(uuid);
  const summary = useData(`conversations/${uuid}/row`, () =>
    unwrap(api.GET("/user/conversations/{uuid}", { params: { path: { uuid } } })), EVALUATED);
  const record = useData(`conversations/${uuid}`, () => unwrap(api.GET("/conversations/{uuid}", {
    params: { path: { uuid } },
  })));
  const answers = useRecord(uuid);
  const [isSuggesting, setSuggesting] = useState(false);
  const { talk, lostAt, error } = watch;
  const failure = error ?? summary.error;
  const row = summary.value?.data ?? null;
  return (
    <Page
      title={row ? titleOf(row) : `Conversation ${uuid.slice(0, 8)}`} back={BACK}
      actions={talk && (
        <>
          <Button needs="answer" onClick={() => setSuggesting(true)}>Suggest a reply</Button>
          <DeleteConversation uuid={uuid} />
          <DeletePerson person={{ conversation_id: uuid }} home="/conversations" />
        </>
      )}
    >
      {lostAt && (
        <Notice tone="warn">
          The connection is lost. This is as of {timeOfDay(lostAt)}; what was missed follows.
        </Notice>
      )}
      {Boolean(failure) && (
        <Failure error={failure} retry={error ? undefined : summary.reload} />
      )}
      {talk?.hasEnded && <Notice>The conversation has ended.</Notice>}
      {!(error && !talk) && (
        <div class="grid main-aside">
          <Card title="Messages" class={lostAt ? "conversations-stale" : ""}>
            {talk
              ? <Messages items={talk.items} usages={usagesOf(talk.items, answers)} uuid={uuid} />
              : <Skeleton lines={6} />}
          </Card>
          <div class="stack">
            {talk && <Ai uuid={uuid} watch={watch} row={row} />}
            <About uuid={uuid} watch={watch} row={row} />
            <Values
              title="Evaluation" values={row?.evaluation ?? {}}
              note={row?.evaluation_error && <Notice tone="warn">{row.evaluation_error}</Notice>}
            />
            <Opinion row={row} />
            <Answers record={answers} />
            <Values title="Variables" values={record.value?.variables ?? {}} />
          </div>
        </div>
      )}
      {isSuggesting && talk && (
        <Suggest uuid={uuid} talk={talk} row={row} onClose={() => setSuggesting(false)} />
      )}
    </Page>
  );
}

interface AsideProps {
  uuid: string;
  watch: Watch;
  row: Summary | null;
}

function Ai({ uuid, watch, row }: AsideProps) {
  const isOn = watch.talk?.aiEnabled ?? row?.ai_enabled ?? true;
  const api = useApi();
  const { isBusy, run } = useToastedWork();
  const toggle = (on: boolean): void => run(async () => {
    const params = { params: { path: { uuid } } };
    const { ai_enabled: isEnabled } = await unwrap(on
      ? api.POST("/automate/conversations/{uuid}/enable-ai", params)
      : api.POST("/automate/conversations/{uuid}/disable-ai", params));
    watch.receive({ type: "ai_toggled", ai_enabled: isEnabled });
  });
  return (
    <Card>
      <Toggle
        label="The AI answers" needs="answer" value={isOn} disabled={isBusy} onInput={toggle}
        hint="Off: messages are kept and are not answered automatically."
      />
    </Card>
  );
}

/** How the visitor rated the conversation. */
function Opinion({ row }: { row: Summary | null }) {
  if (!row?.satisfaction) return null;
  const { score, comment, created_at: at } = row.satisfaction;
  return (
    <Card title="The visitor’s opinion">
      <p><strong>{score} of 5</strong> <small>{whenExactly(at)}</small></p>
      {comment !== null && <blockquote>{comment}</blockquote>}
    </Card>
  );
}

function About({ uuid, watch: { talk }, row }: AsideProps) {
  const { value: assistants } = useAssistants();
  const assistant = row?.assistant_id ?? talk?.assistantUuid ?? null;
  const name = row?.assistant_name ?? assistants?.find((one) => one.uuid === assistant)?.name;
  const type = row?.type ?? talk?.type ?? null;
  return (
    <Card title="About">
      <Facts rows={[
        ["Assistant", assistant && <AssistantLink uuid={assistant} name={name ?? assistant} />],
        ["Type", type && typeName(type)],
        ...(row ? [
          ["Started", whenExactly(row.created_at)], ["Cost", money(row.total_cost)],
        ] as [string, string][] : []),
        ["Identifier", <code>{uuid}</code>],
      ]} />
    </Card>
  );
}
