// One assistant: its settings beside a chat to test them, and how to put it on a website. The edits
// and the test live here, so that they survive a change of tab.
import { useState } from "preact/hooks";
import type { PageProps } from "#ui/dashboard/page.ts";
import { useMe } from "#ui/dashboard/data/lists.ts";
import { messageOf, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData, type Data } from "#ui/dashboard/data/use-data.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Loaded, Page, Status, Tabs } from "#ui/dashboard/kit/layout.tsx";
import { LeaveGuard, UnsavedBar } from "#ui/dashboard/kit/unsaved.tsx";
import { DraftProvider, useNewDraft, type Assistant, type Draft } from "./draft.ts";
import { Embed } from "./embed.tsx";
import { labelOf } from "./labels.ts";
import { Settings } from "./settings.tsx";
import { TestChat, TestPane, useTest } from "./test-chat.tsx";
import { WidgetLook } from "./widget-look.tsx";
import "./assistants.css";

const BACK = { href: "#/assistants", label: "Assistants" };

export function AssistantPage({ params }: PageProps) {
  const api = useApi();
  const id = Number(params.id);
  const data = useData(`assistant ${id}`, () =>
    unwrap(api.GET("/user/assistant/{id}", { params: { path: { id } } })));
  if (data.value?.id !== id) {
    return <Page title="Assistant" back={BACK}><Loaded data={data}>{() => null}</Loaded></Page>;
  }
  return <Opened key={id} data={data} record={data.value} tab={params.tab ?? "settings"} />;
}

const TABS = [
  { id: "settings", label: "Settings" }, { id: "test", label: "Test chat" },
  { id: "widget", label: "Widget" }, { id: "embed", label: "Embed" },
];

function Opened({ data, record, tab: named }: {
  data: Data<Assistant>; record: Assistant; tab: string;
}) {
  const toasts = useToasts();
  const me = useMe();
  const draft = useNewDraft(record, {
    onRead: data.set,
    onSaved: () => {
      toasts.notify("Saved");
      // Another daily limit ends the trouble of having reached it.
      me.reload();
    },
  });
  const test = useTest(draft);
  const home = `#/assistants/${record.id}`;
  const isDirty = draft.changed.length > 0;
  const tab = TABS.some(({ id }) => id === named) ? named : "settings";
  const tabs = TABS.map((one, at) => ({ ...one, href: at === 0 ? home : `${home}/${one.id}` }));
  return (
    <Page
      title={record.name} back={BACK}
      actions={<Actions draft={draft} reload={data.reload} />}
    >
      <DraftProvider value={draft}>
        <Tabs tabs={tabs} current={tab} />
        {/* Hidden, not unmounted: keeps the open sections and the scroll position. */}
        <div class="assistants-bench" hidden={tab !== "settings"}>
          <Settings isShown={tab === "settings"} />
          {tab === "settings" && <TestPane test={test} />}
        </div>
        {tab === "test" && <TestChat test={test} />}
        {tab === "widget" && <WidgetLook />}
        {tab === "embed" && <Embed />}
        {isDirty && (
          <UnsavedBar
            needs="build"
            isBusy={draft.isSaving} note={complaintOf(draft)} onDiscard={draft.discard}
            onSave={draft.save}
          />
        )}
      </DraftProvider>
      <LeaveGuard isDirty={isDirty} home={home} />
    </Page>
  );
}

/** The server's first complaint, with the label of the field it is about. */
function complaintOf({ failure, errors }: Draft): string | null {
  const [first, ...more] = Object.entries(errors);
  if (first) {
    const [name, text] = first;
    const others = more.length > 0 ? ` And ${more.length} more.` : "";
    const label = labelOf(name);
    return `${text.includes(label) ? "" : `${label}: `}${text}${others}`;
  }
  return failure ? messageOf(failure) : null;
}

function Actions({ draft, reload }: { draft: Draft; reload(): void }) {
  const api = useApi();
  const toasts = useToasts();
  const work = useToastedWork();
  const [isDeleting, setDeleting] = useState(false);
  const { record } = draft;
  const params = { path: { id: record.id } };
  const isActive = record.status === "active";
  const turn = async (status: "active" | "inactive"): Promise<void> => {
    await unwrap(api.PATCH("/user/assistant/{id}", { params, body: { status } }));
    reload();
    const isOn = status === "active";
    toasts.notify(
      isOn ? "Enabled" : "Disabled: it takes no calls. Chats are still answered.", () => turn(isOn ? "inactive" : "active"));
  };
  const duplicate = async (): Promise<void> => {
    const { id: _id, ...copied } = record;
    const body = {
      ...copied, name: `${record.name.slice(0, 240)} (copy)`, status: "inactive",
      phone_number_id: null,
    };
    // Records can be sent as they are, though their types differ from the body's.
    const { data } = await unwrap(api.POST("/user/assistant", { body: body as never }));
    location.hash = `#/assistants/${data.id}`;
  };
  return (
    <>
      <Status code={record.status} />
      <Button needs="build" isBusy={work.isBusy} onClick={() => work.run(() => turn(isActive ? "inactive" : "active"))}>
        {isActive ? "Disable" : "Enable"}
      </Button>
      <Button needs="build" icon="copy" isBusy={work.isBusy} onClick={() => work.run(duplicate)}>
        Duplicate
      </Button>
      <Button kind="quiet" needs="build" onClick={() => setDeleting(true)}>Delete</Button>
      {isDeleting && (
        <Confirm
          title={`Delete ${record.name}?`} action="Delete" onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await unwrap(api.DELETE("/user/assistant/{id}", { params }));
            draft.discard();
            location.hash = "#/assistants";
            toasts.notify("Deleted");
          }}
        >
          It stops answering at once, and its number is free again. Its calls and conversations
          stay. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}
