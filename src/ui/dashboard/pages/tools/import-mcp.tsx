// Fills in the form of a new tool from an MCP server, and reads a tool's description again.
import { useState } from "preact/hooks";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, Form, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Card, Notice } from "#ui/dashboard/kit/layout.tsx";
import { fromMcp, type Imported } from "./import.ts";
import type { Tool, ToolFields } from "./tool-fields.ts";
import { asIs } from "#ui/dashboard/kit/texts.ts";

export function ImportMcp({ onRead }: { onRead(fields: ToolFields): void }) {
  const api = useApi();
  const [endpoint, setEndpoint] = useState("");
  const [secret, setSecret] = useState("");
  const [found, setFound] = useState<Imported[]>([]);
  const [chosen, setChosen] = useState("0");
  const [error, setError] = useState<unknown>(null);
  const take = (all: Imported[], at: string): void => {
    setChosen(at);
    const one = all[Number(at)];
    if (one) onRead(one.fields);
  };
  const read = async (): Promise<void> => {
    const headers = secret === "" ? [] : [{ name: asIs("Authorization"), value: secret }];
    const { data } = await unwrap(api.POST("/user/tools/mcp", { body: { endpoint, headers } }));
    const all = fromMcp(endpoint, headers.map((header) => ({ ...header, stored: "" })), data);
    setFound(all);
    setError(null);
    take(all, "0");
  };
  return (
    <Card title="Or use a tool of an MCP server">
      <div class="stack">
        <Form submit="Read its list" needs="build" error={error} onError={setError} onSubmit={read}>
          <TextField
            label="MCP server address" type="url" required value={endpoint}
            onInput={setEndpoint} placeholder="https://example.com/mcp"
            error={fieldErrors(error).endpoint}
          />
          <TextField
            label="Authorization" type="password" autoComplete="new-password" value={secret}
            onInput={setSecret} placeholder="Bearer …" hint="If it asks for one; stored encrypted"
          />
        </Form>
        {found.length > 0 && (
          <SelectField
            label={`Tool, of ${found.length}`} value={chosen}
            onInput={(at) => take(found, at)}
            options={found.map(({ fields }, at) => ({
              value: String(at), label: fields.mcp?.tool ?? fields.name,
            }))}
          />
        )}
        {found.length > 0 && (
          <div role="status">
            <Notice tone="good">The form shows what the server says. Check it, then create it.</Notice>
          </div>
        )}
      </div>
    </Card>
  );
}

/**
 * Replaces the tool's description by what its server says now. `isDisabled`: there are unsaved
 * changes, which would be lost.
 */
export function RefreshMcp({ tool, isDisabled, onDone }: {
  tool: Tool; isDisabled: boolean; onDone(tool: Tool): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const { isBusy, run } = useToastedWork();
  return (
    <Button
      kind="quiet" needs="build" isBusy={isBusy} disabled={isDisabled}
      onClick={() => run(async () => {
        const { data } = await unwrap(api.POST("/user/tools/{id}/refresh", {
          params: { path: { id: tool.id } },
        }));
        onDone(data);
        toasts.notify("Read again");
      })}
    >
      Read its description again
    </Button>
  );
}
