// What to do first, while nobody has talked with anybody yet.
import type { ComponentChildren } from "preact";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Icon } from "#ui/dashboard/kit/icons.tsx";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import { Copyable } from "#ui/dashboard/kit/copy.tsx";

export function FirstSteps() {
  const api = useApi();
  // The figures are of some days only: whoever talked before these days knows the way.
  const { value } = useData("overview first steps", async () => {
    const [assistants, calls, talks] = await Promise.all([
      unwrap(api.GET("/user/assistants")),
      unwrap(api.GET("/user/calls", { params: { query: { per_page: 1 } } })),
      unwrap(api.GET("/user/conversations", { params: { query: { per_page: 1 } } })),
    ]);
    return { assistants, hasTalked: calls.total > 0 || talks.data.length > 0 };
  });
  if (!value || value.hasTalked) return null;
  const [first] = value.assistants;
  return (
    <Card title="First steps">
      <ol class="overview-steps">
        <Step isDone={Boolean(first)} title={first ? `You have an assistant: ${first.name}` : "Create an assistant"}>
          {first
            ? <p><a href={`#/assistants/${first.id}/test`}>Chat with it</a> or <a href={`#/assistants/${first.id}`}>change what it says</a>.</p>
            : <p>It answers calls, chats and your website’s visitors. <a class="button main" href="#/assistants"><Icon name="add" />Create one</a></p>}
        </Step>
        <Step title="Put it on your website">
          {first ? (
            <>
              <p>Paste this before <code>&lt;/body&gt;</code>:</p>
              <Copyable label="Script tag" text={tagOf(first.uuid)} />
            </>
          ) : <p>The tag to paste is here once there is an assistant.</p>}
        </Step>
        <Step title="Hear it on a call">
          <p>
            <a href="#/calls">Try a call</a> that the server makes to itself
            {first && <>, or <a href={`/talk/${first.uuid}`} target="_blank" rel="noopener">talk with it</a> in this browser</>}.
          </p>
        </Step>
        <Step title="Build on it">
          <p>Everything here is in the <a href="/docs">API</a>; <a href="#/keys">make a key</a> for your program.</p>
        </Step>
      </ol>
    </Card>
  );
}

const tagOf = (uuid: string): string =>
  `<script async src="${location.origin}/widget.js" data-assistant="${uuid}"></script>`;

function Step({ title, isDone = false, children }: {
  title: string; isDone?: boolean; children: ComponentChildren;
}) {
  return (
    <li class={isDone ? "done" : undefined}>
      <h3>{isDone && <Icon name="check" />}{title}{isDone && <span class="hidden-visually"> (done)</span>}</h3>
      {children}
    </li>
  );
}
