// One tool, existing or new: its settings, and a trial.
import { useEffect, useState } from "preact/hooks";
import type { PageProps } from "#ui/dashboard/page.ts";
import { meanwhile, takenFault } from "#ui/dashboard/data/meanwhile.ts";
import { fieldErrors, messageOf, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button, Form, useWork } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Card, Loaded, Notice, Page } from "#ui/dashboard/kit/layout.tsx";
import { LeaveGuard, UnsavedBar } from "#ui/dashboard/kit/unsaved.tsx";
import { bodyOf, changesOf, EMPTY, fieldsOf, type Tool } from "./tool-fields.ts";
import { Import } from "./import.tsx";
import { ImportMcp, RefreshMcp } from "./import-mcp.tsx";
import { LastCalls } from "./last-calls.tsx";
import { ToolForm } from "./tool-form.tsx";
import { TryTool } from "./try.tsx";
import "./tools.css";

const BACK = { href: "#/tools", label: "Tools" };

export function ToolPage({ params }: PageProps) {
  return params.id === "new" ? <NewToolPage /> : <SavedToolPage id={Number(params.id)} />;
}

function NewToolPage() {
  const api = useApi();
  const [fields, setFields] = useState(EMPTY);
  const [error, setError] = useState<unknown>(null);
  const [isDone, setDone] = useState(false);
  const create = async (): Promise<void> => {
    const { data } = await unwrap(api.POST("/user/tools", { body: bodyOf(fields) }));
    // Rendered before the address changes, so that the leave guard finds nothing unsaved.
    setDone(true);
    setTimeout(() => void (location.hash = `#/tools/${data.id}`));
  };
  const isDirty = !isDone && JSON.stringify(fields) !== JSON.stringify(EMPTY);
  return (
    <Page title="New tool" back={BACK}>
      <div class="grid two">
        <Card title="What it calls">
          <Form submit="Create" needs="build" error={error} onError={setError} onSubmit={create}>
            <ToolForm fields={fields} errors={fieldErrors(error)} onChange={setFields} />
          </Form>
        </Card>
        <div class="stack">
          <Import onRead={setFields} />
          <ImportMcp onRead={setFields} />
          <TryTool
            tool={bodyOf(fields)}
            call={(filled) => unwrap(api.POST("/user/tools/try", {
              body: { ...bodyOf(fields), ...filled },
            }))}
          />
        </div>
      </div>
      <LeaveGuard isDirty={isDirty} home="#/tools/new" />
    </Page>
  );
}

function SavedToolPage({ id }: { id: number }) {
  const api = useApi();
  const data = useData(`tool ${id}`, () =>
    unwrap(api.GET("/user/tools/{id}", { params: { path: { id } } })));
  if (data.value?.id !== id) {
    return <Page title="Tool" back={BACK}><Loaded data={data}>{() => null}</Loaded></Page>;
  }
  return <Opened key={id} tool={data.value} onSaved={data.set} />;
}

function Opened({ tool, onSaved }: { tool: Tool; onSaved(tool: Tool): void }) {
  const api = useApi();
  const toasts = useToasts();
  // The tool that the edits are based on, whatever is loaded meanwhile.
  const [before, setBefore] = useState(tool);
  const [fields, setFields] = useState(() => fieldsOf(tool));
  const [error, setError] = useState<unknown>(null);
  const [isGone, setGone] = useState(false);
  const work = useWork(setError);
  const changes = changesOf(fields, before);
  const isDirty = !isGone && Object.keys(changes).length > 0;
  const take = (read: Tool, base = fieldsOf(before)): void => {
    setBefore(read);
    setFields((now) => meanwhile(now, base, fieldsOf(read)).merged);
  };
  useEffect(() => {
    if (!isDirty) take(tool);
  }, [tool]);
  const save = async (): Promise<void> => {
    const params = { path: { id: tool.id } };
    const fresh = await unwrap(api.GET("/user/tools/{id}", { params }));
    const { taken } = meanwhile(fields, fieldsOf(before), fieldsOf(fresh));
    if (taken.length > 0) {
      onSaved(fresh);
      take(fresh);
      throw takenFault(taken);
    }
    const { data } = await unwrap(api.PATCH("/user/tools/{id}", { params, body: changes }));
    onSaved(data);
    // What was typed meanwhile stays unsaved.
    take(data, fields);
    setError(null);
    toasts.notify("Saved");
  };
  return (
    <Page
      title={tool.name} back={BACK} actions={<Delete tool={tool} onGone={() => setGone(true)} />}
    >
      {tool.problem !== null && <Notice tone="bad">{tool.problem}</Notice>}
      <div class="grid two">
        <Card title="What it calls">
          <ToolForm fields={fields} errors={fieldErrors(error)} onChange={setFields} />
          {tool.mcp && <RefreshMcp tool={tool} isDisabled={isDirty} onDone={onSaved} />}
        </Card>
        <div class="stack">
          <TryTool
            tool={tool} isStale={isDirty}
            call={(body) => unwrap(api.POST("/user/tools/{id}/try", {
              params: { path: { id: tool.id } }, body,
            }))}
          />
          <LastCalls id={tool.id} />
        </div>
      </div>
      {isDirty && (
        <UnsavedBar
          needs="build"
          isBusy={work.isBusy} note={error ? messageOf(error) : null}
          onSave={() => work.run(save)}
          onDiscard={() => {
            setBefore(tool);
            setFields(fieldsOf(tool));
            setError(null);
          }}
        />
      )}
      <LeaveGuard isDirty={isDirty} home={`#/tools/${tool.id}`} />
    </Page>
  );
}

function Delete({ tool, onGone }: { tool: Tool; onGone(): void }) {
  const api = useApi();
  const toasts = useToasts();
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button kind="quiet" needs="build" onClick={() => setAsking(true)}>Delete</Button>
      {isAsking && (
        <Confirm
          title={`Delete ${tool.name}?`} action="Delete" onClose={() => setAsking(false)}
          onConfirm={async () => {
            await unwrap(
              api.DELETE("/user/tools/{id}", { params: { path: { id: tool.id } } }));
            onGone();
            toasts.notify("Deleted");
            setTimeout(() => void (location.hash = "#/tools"));
          }}
        >
          It is taken from every assistant that has it. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}
