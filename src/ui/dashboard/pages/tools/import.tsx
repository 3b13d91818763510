// Filling in the form of a new tool from a cURL command or an OpenAPI document.
import { useState } from "preact/hooks";
import { Button, Form, SelectField, TextArea } from "#ui/dashboard/kit/controls.tsx";
import { Card, Notice } from "#ui/dashboard/kit/layout.tsx";
import { importTools, type Imported } from "./import.ts";
import type { ToolFields } from "./tool-fields.ts";

export function Import({ onRead }: { onRead(fields: ToolFields): void }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<Imported[]>([]);
  const [chosen, setChosen] = useState(0);
  const [error, setError] = useState<unknown>(null);
  const take = (all: Imported[], at: number): void => {
    setFound(all);
    setChosen(at);
    const one = all[at];
    if (one) onRead(one.fields);
  };
  const read = async (): Promise<void> => {
    setFound([]);
    take(importTools(text), 0);
    setError(null);
  };
  return (
    <Card title="Fill in from an existing request">
      <div class="stack">
        <Form submit="Fill in the form" error={error} onError={setError} onSubmit={read}>
          <TextArea
            label="cURL command or OpenAPI document" rows={5} value={text} onInput={setText}
            hint="OpenAPI as JSON. Nothing is called and nothing is saved."
            placeholder="curl https://example.com/orders -d '{&quot;number&quot;: &quot;4711&quot;}'"
          />
        </Form>
        {found.length > 1 && (
          <SelectField
            label={`Operation, of ${found.length}`} value={String(chosen)}
            onInput={(at) => take(found, Number(at))}
            options={found.map(({ fields }, at) => ({
              value: String(at), label: `${fields.method} ${fields.endpoint}`,
            }))}
          />
        )}
        {found.length > 0 && (
          <div role="status">
            <Notice tone="good">The form shows what was read. Check it, then create the tool.</Notice>
            {found[chosen]?.notes.map((note) => <p key={note}><small>{note}</small></p>)}
          </div>
        )}
        {found.length > 1 && chosen < found.length - 1 && (
          <Button onClick={() => take(found, chosen + 1)}>Next operation</Button>
        )}
      </div>
    </Card>
  );
}
