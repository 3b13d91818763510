// One conversation in the inbox: its messages, who has it, and what a person can do with it.
import type { ComponentProps } from "preact";
import { useEffect, useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useNow } from "#ui/dashboard/data/use-now.ts";
import { useMay } from "#ui/dashboard/data/rights.tsx";
import { SHARED, useData } from "#ui/dashboard/data/use-data.ts";
import { Button, SelectField } from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { timeOfDay, when } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Failure, Notice, Skeleton } from "#ui/dashboard/kit/layout.tsx";
import { Values } from "#ui/dashboard/pages/calls/facts.tsx";
import { titleOf, type Summary } from "#ui/dashboard/pages/conversations/conversations.tsx";
import { Messages } from "#ui/dashboard/pages/conversations/messages.tsx";
import { useWatch, type Watch } from "#ui/dashboard/pages/conversations/watch-conversation.ts";
import { Composer } from "./composer.tsx";
import { Callback, Labels } from "./beside.tsx";
import { Knowledge } from "./knowledge.tsx";
import type { InboxPage } from "./inbox.tsx";
import { Notes } from "./notes.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";

type Me = InboxPage["me"];

interface PlaceProps {
  uuid: string;
  me: Me | null;
  onChanged(): void;
}

export function Place({ uuid, me, onChanged }: PlaceProps) {
  const api = useApi();
  const watch = useWatch(uuid);
  const { value, error, reload } = useData(`conversations/${uuid}/row`, () =>
    unwrap(api.GET("/user/conversations/{uuid}", { params: { path: { uuid } } })),
  ["desk_changed"]);
  const row = value?.data ?? null;
  const { talk, lostAt } = watch;
  useReading(uuid, talk?.items.length ?? 0);
  const failure = watch.error ?? error;
  if (failure && !(talk && row)) {
    return <Card><Failure error={failure} retry={watch.error ? undefined : reload} /></Card>;
  }
  return (
    <div class="inbox-place">
      <Card title={row ? titleOf(row) : "…"} actions={<a class="inbox-back" href="#/inbox">Queue</a>}>
        {lostAt && (
          <Notice tone="warn">The connection is lost. This is as of {timeOfDay(lostAt)}.</Notice>
        )}
        {row && <Holder row={row} me={me} watch={watch} />}
        {talk ? <Messages items={talk.items} usages={[]} uuid={uuid} /> : <Skeleton lines={6} />}
        {talk && watch.isReadByVisitor && talk.items.at(-1)?.role === "operator" && (
          <p class="soft inbox-read" role="status">Read by the visitor</p>
        )}
        <Typing until={watch.typingUntil} />
        {row && talk && (
          <Reply uuid={uuid} row={row} talk={talk} isOthers={isOthers(row, me)} />
        )}
      </Card>
      <div class="stack">
        <Callback uuid={uuid} />
        <Notes uuid={uuid} />
        <Labels uuid={uuid} onChanged={onChanged} />
        {row && (
          <Card title="About">
            <Facts rows={[
              ["Assistant", row.assistant_name], ["Started", when(row.created_at)],
              ...(row.visitor_id ? [["Signed in as", row.visitor_id] as [string, string]] : []),
              ...(row.page ? [["On the page", row.page] as [string, string]] : []),
              ["Full record", <a href={`#/conversations/${uuid}`}>Conversation</a>],
            ]} />
          </Card>
        )}
        <Values title="Variables" values={row?.variables ?? {}} />
      </div>
    </div>
  );
}

/** Where people write a reply, and look up what to write. */
function Reply(props: Omit<ComponentProps<typeof Composer>, "found">) {
  const [found, setFound] = useState<{ text: string } | null>(null);
  const asked = props.talk.items.findLast(({ role }) => role === "user")?.text ?? "";
  return (
    <>
      <Composer {...props} found={found} />
      {!props.isOthers && (
        <Knowledge
          assistantUuid={props.row.assistant_id} asked={asked}
          onChosen={(text) => setFound({ text })}
        />
      )}
    </>
  );
}

/** Reports what is on the screen as read, with every message, while the page is visible. */
function useReading(uuid: string, messages: number): void {
  const api = useApi();
  useEffect(() => {
    if (messages === 0) return;
    const read = (): void => {
      if (document.hidden) return;
      // The next message says it again.
      api.POST("/user/conversations/{uuid}/read", { params: { path: { uuid } } })
        .catch(() => undefined);
    };
    read();
    document.addEventListener("visibilitychange", read);
    return () => document.removeEventListener("visibilitychange", read);
  }, [uuid, messages]);
}

function Typing({ until }: { until: number }) {
  const now = useNow(until > 0);
  return <p class="soft inbox-typing" role="status">{now < until ? "The visitor is typing…" : ""}</p>;
}

const isOthers = ({ desk, desk_holder: holder }: Summary, me: Me | null): boolean =>
  desk === "person" && holder !== null && holder.id !== me?.id;

const REASONS: Record<string, string> = {
  asked: "A person was requested", tool_failures: "The assistant’s functions failed",
  unanswered: "The assistant could not answer", words: "The visitor used one of the words",
  lost: "The person who had it may no longer answer",
};

function Holder({ row, me, watch }: { row: Summary; me: Me | null; watch: Watch }) {
  const api = useApi();
  const toasts = useToasts();
  const { isBusy, run } = useToastedWork();
  const params = { params: { path: { uuid: row.id } } };
  const takeOver = () => unwrap(api.POST("/user/conversations/{uuid}/take-over", params));
  const handBack = () => unwrap(api.POST("/user/conversations/{uuid}/hand-back", params));
  const end = () => unwrap(api.POST("/user/conversations/{uuid}/end", params));
  const give = (to: string) =>
    unwrap(api.POST("/user/conversations/{uuid}/assign", { ...params, body: { to } }));
  /**
   * Undo returns it to its previous holder or the assistant; nobody can be put back into the
   * queue.
   */
  const does = (work: () => Promise<unknown>, text: string): void => run(async () => {
    await work();
    const back = desk === "assistant" ? handBack : holder && (() => give(holder.id));
    toasts.notify(text, back ?? undefined);
  });
  const { desk, desk_holder: holder, desk_reason: reason, desk_at: at } = row;
  const others = isOthers(row, me);
  const says = {
    assistant: "The assistant answers.",
    waiting: t(`${REASONS[reason ?? ""] ?? "A person was requested"}${at ? `, ${when(at)}` : ""}. The assistant answers meanwhile.`),
    person: others ? t(`${holder?.name ?? ""} has this conversation.`) : "You have this conversation. The assistant is silent.",
  }[desk];
  return (
    <div class="inbox-holder">
      <p role="status">{watch.talk?.hasEnded ? "The conversation has ended." : says}</p>
      <div class="actions">
        {(desk !== "person" || !holder) && (
          <Button
            kind="main" needs="answer" isBusy={isBusy} shortcut="t"
            onClick={() => does(takeOver, "You have it now.")}
          >Take over</Button>
        )}
        {desk !== "assistant" && (
          <Button
            needs="answer" isBusy={isBusy} shortcut="h"
            onClick={() => does(handBack, "The assistant has it again.")}
          >Hand back</Button>
        )}
        <Give
          holderId={holder?.id ?? null}
          onChosen={(to, name) => does(() => give(to), `Assigned to ${name}.`)}
        />
        {desk === "person" && !others && (
          <Button needs="answer" isBusy={isBusy} onClick={() => does(end, "You ended it.")}>End</Button>
        )}
      </div>
    </div>
  );
}

/** Assigns it to a member who may answer and does not have it. */
function Give({ holderId, onChosen }: {
  holderId: string | null; onChosen(to: string, name: string): void;
}) {
  const api = useApi();
  const may = useMay();
  const members = useData(
    "members", async () => (await unwrap(api.GET("/user/members"))).data, [], SHARED);
  const others = (members.value ?? [])
    .filter(({ role, author_id: id }) => role !== "viewer" && id !== holderId);
  if (others.length === 0 || may("answer") !== null) return null;
  return (
    <SelectField
      label="Assign to" hidesLabel value=""
      options={[
        { value: "", label: "Assign to…" },
        ...others.map(({ author_id: value, name: label }) => ({ value, label })),
      ]}
      onInput={(to) => {
        const chosen = others.find(({ author_id: id }) => id === to);
        if (chosen) onChosen(to, chosen.name);
      }}
    />
  );
}
