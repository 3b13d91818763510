// What the account notes about a conversation; visitors never read it.
import { useState } from "preact/hooks";
import { Needs } from "#ui/dashboard/data/rights.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Form, TextArea } from "#ui/dashboard/kit/controls.tsx";
import { when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Loaded } from "#ui/dashboard/kit/layout.tsx";

export function Notes({ uuid }: { uuid: string }) {
  const api = useApi();
  const path = { params: { path: { uuid } } };
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>(null);
  const notes = useData(`conversations/${uuid}/notes`, () =>
    unwrap(api.GET("/user/conversations/{uuid}/notes", path)), ["note_added"]);
  const add = async (): Promise<void> => {
    setError(null);
    await unwrap(api.POST("/user/conversations/{uuid}/notes", { ...path, body: { text } }));
    setText((now) => (now === text ? "" : now));
  };
  return (
    <Card title="Notes">
      <Loaded data={notes}>
        {({ data }) => data.length > 0 && (
          <ul class="inbox-notes" aria-label="Notes">
            {data.map(({ id, author, text: said, created_at: at }) => (
              <li key={id}>
                <span class="inbox-head">
                  <strong>{author?.name ?? "Assistant"}</strong>
                  <time title={whenExactly(at)}>{when(at)}</time>
                </span>
                <p dir="auto">{said}</p>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      <Needs right="answer">
        <Form submit="Add note" error={error} onError={setError} onSubmit={add}>
          <TextArea label="New note" value={text} onInput={setText} rows={2} hint="Visitors do not see notes" />
        </Form>
      </Needs>
    </Card>
  );
}
