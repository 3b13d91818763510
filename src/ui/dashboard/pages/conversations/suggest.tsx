// The assistant's suggested reply to a customer's message, for people who answer themselves.
import { useRef, useState } from "preact/hooks";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Form, TextArea } from "#ui/dashboard/kit/controls.tsx";
import { CopyButton } from "#ui/dashboard/kit/copy.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { Loaded, Notice } from "#ui/dashboard/kit/layout.tsx";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { FunctionCalls } from "#ui/dashboard/pages/calls/facts.tsx";
import type { Summary } from "./conversations.tsx";
import type { Talk } from "./talk.ts";

interface SuggestProps {
  uuid: string;
  talk: Talk;
  row: Summary | null;
  onClose(): void;
}

interface Suggestion {
  conversation_id: string;
  reply: string;
  function_calls: unknown[];
  ai_disabled: boolean;
}

export function Suggest(props: SuggestProps) {
  const { talk, row, onClose } = props;
  const assistants = useAssistants();
  const uuid = row?.assistant_id ?? talk.assistantUuid;
  return (
    <Dialog title="Suggest a reply" onClose={onClose}>
      <Loaded data={assistants}>
        {(all) => {
          const assistant = all.find((one) => one.uuid === uuid);
          return assistant
            ? <SuggestForm {...props} assistantId={assistant.id} />
            : <p>The assistant of this conversation no longer exists.</p>;
        }}
      </Loaded>
    </Dialog>
  );
}

function SuggestForm(props: SuggestProps & { assistantId: number }) {
  const { uuid, talk, row, assistantId, onClose } = props;
  const api = useApi();
  const asked = talk.items.findLast(({ role }) => role === "user")?.text ?? "";
  const [message, setMessage] = useState(asked);
  const [error, setError] = useState<unknown>(null);
  const [made, setMade] = useState<Suggestion | null>(null);
  // A customer of another system has one conversation, which the request continues.
  const customer = row?.external_identifier;
  const send = async (): Promise<void> => {
    setError(null);
    setMade(await unwrap(api.POST("/user/ai/generate-reply", {
      body: {
        assistant_id: assistantId, customer_identifier: customer ?? `suggestion:${uuid}`, message,
        ...(row?.variables ? { variables: row.variables } : {}),
      },
    })));
  };
  return (
    <>
      <Form
        submit={made ? "Suggest again" : "Suggest"} error={error} onError={setError}
        onSubmit={send} onCancel={onClose}
      >
        <p class="soft">
          {customer
            ? "The message and its reply are added to this customer's conversation, and charged like any message."
            : "Asked in a separate conversation and charged like any message. The customer does not see it."}
        </p>
        <TextArea
          label="The customer's message" value={message} onInput={setMessage}
          error={fieldErrors(error).message}
        />
      </Form>
      {made && <Suggested made={made} />}
    </>
  );
}

function Suggested({ made }: { made: Suggestion }) {
  const shown = useRef<HTMLParagraphElement>(null);
  if (made.ai_disabled) return <Notice tone="warn">The AI is off in that conversation: nothing was answered.</Notice>;
  return (
    <section class="conversations-suggestion" role="status" aria-label="Suggestion">
      <p ref={shown} dir="auto">{made.reply}</p>
      <FunctionCalls calls={made.function_calls} />
      <div class="actions">
        <CopyButton text={made.reply} shown={shown} />
        <a href={`#/conversations/${made.conversation_id}`}>Its conversation</a>
      </div>
    </section>
  );
}
