// The first steps: each stays until there is proof that it is done, all of them until all are done
// or somebody dismisses them.
import type { ComponentChildren } from "preact";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Copyable } from "#ui/dashboard/kit/copy.tsx";
import { useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Icon } from "#ui/dashboard/kit/icons.tsx";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import type { OverviewData } from "./overview.tsx";

type Steps = OverviewData["first_steps"];
type Step = Steps["steps"][number];

export function FirstSteps({ steps: { steps, dismissed }, onChange }: {
  steps: Steps; onChange(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const { isBusy, run } = useToastedWork();
  const put = (isDismissed: boolean) => async (): Promise<void> => {
    await unwrap(api.PUT("/user/first-steps", { body: { dismissed: isDismissed } }));
    onChange();
    if (isDismissed) toasts.notify("The first steps are hidden.", put(false));
  };
  if (dismissed || steps.every(({ done }) => done)) return null;
  const of = (name: Step["step"]): Step | undefined => steps.find(({ step }) => step === name);
  const done = steps.filter((step) => step.done).length;
  return (
    <Card
      title={`First steps: ${done} of ${steps.length} done`}
      actions={<Button kind="quiet" needs="build" icon="close" isBusy={isBusy} onClick={() => run(put(true))}>Hide</Button>}
    >
      <ol class="overview-steps">
        {steps.map((step) => (
          <Item key={step.step} step={step} assistant={of("assistant")} />
        ))}
      </ol>
    </Card>
  );
}

const TITLES: Record<Step["step"], [todo: string, done: string]> = {
  assistant: ["Create an assistant", "You have an assistant"],
  reply: ["Chat with it", "It replied"],
  document: ["Give it knowledge", "It found a document"],
  call: ["Hear it on a call", "It took a call"],
  website: ["Put it on your website", "It answered a visitor"],
};

function Item({ step, assistant }: { step: Step; assistant: Step | undefined }) {
  const [todo, done] = TITLES[step.step];
  return (
    <li class={step.done ? "done" : undefined}>
      <h3>
        {step.done && <Icon name="check" />}
        {step.done ? done : todo}{step.done && step.name && `: ${step.name}`}
        {step.done && <span class="hidden-visually"> (done)</span>}
      </h3>
      {step.done && (
        <p class="soft">
          <time title={whenExactly(step.done_at ?? "")}>{when(step.done_at)}</time>
          {proofOf(step) && <>. <a href={proofOf(step) ?? ""}>See it</a></>}
        </p>
      )}
      {(!step.done || step.step === "assistant") && <Help step={step} assistant={assistant} />}
    </li>
  );
}

function proofOf({ step, id }: Step): string | null {
  if (id === null) return null;
  if (step === "assistant") return `#/assistants/${id}`;
  return step === "call" ? `#/calls/${id}` : `#/conversations/${id}`;
}

function Help({ step: { step, done }, assistant }: {
  step: Step; assistant: Step | undefined;
}): ComponentChildren {
  const id = assistant?.id ?? null;
  const uuid = assistant?.uuid ?? null;
  switch (step) {
    case "assistant":
      return done ? null : (
        <p>
          It answers calls, chats and your website’s visitors.{" "}
          <a class="button main" href="#/templates"><Icon name="add" />Start from a template</a>{" "}
          or <a href="#/assistants">Create one</a> of your own.
        </p>
      );
    case "reply":
      return id === null
        ? <p>Create an assistant first.</p>
        : <p><a href={`#/assistants/${id}/test`}>Chat with it</a> or <a href={`#/assistants/${id}`}>change what it says</a>.</p>;
    case "document":
      return <p>Add a text, a file or your website under <a href="#/knowledgebases">Knowledge</a>, and try a search there.</p>;
    case "call":
      return (
        <p>
          <a href="#/calls">Try a call</a> that the server makes to itself
          {uuid !== null && <>, or <a href={`/talk/${uuid}`} target="_blank" rel="noopener">talk with it</a> in this browser</>}.
        </p>
      );
    case "website":
      return uuid === null ? <p>The tag to paste is here once there is an assistant.</p> : (
        <>
          <p>Paste this before <code>&lt;/body&gt;</code>:</p>
          <Copyable label="Script tag" text={tagOf(uuid)} />
        </>
      );
  }
}

const tagOf = (uuid: string): string =>
  `<script async src="${location.origin}/widget.js" data-assistant="${uuid}"></script>`;
