// Tries a tool, saved or not: its endpoint is really called, with what a model would fill in, and
// the whole request and response are shown.
import { useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { fieldErrors } from "#ui/dashboard/data/session.tsx";
import { Form, NumberField, SelectField, TextArea, TextField } from "#ui/dashboard/kit/controls.tsx";
import { count, pretty } from "#ui/dashboard/kit/format.ts";
import { Card, Notice } from "#ui/dashboard/kit/layout.tsx";
import type { NewTool, Parameter } from "./tool-fields.ts";
import { plural } from "#ui/dashboard/kit/texts.ts";

type Trial =
  paths["/user/tools/{id}/try"]["post"]["responses"][200]["content"]["application/json"];
type Given = Record<string, string | number | null>;

/** The parts of a tool that a trial needs. */
type Tried = Pick<NewTool, "endpoint" | "headers" | "static_fields" | "schema">;
/** What a model and the conversation would fill in. */
interface Filled {
  arguments: Record<string, unknown>;
  variables: Record<string, string>;
}

/** Variables the address, the headers and the fixed fields take. */
function variablesOf({ endpoint, headers = [], static_fields: fields = [] }: Tried): string[] {
  const texts = [endpoint, ...[...headers, ...fields].map(({ value }) => value)];
  const names = texts.flatMap((text) =>
    [...text.matchAll(/\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}/g)].map((match) => match[1] ?? ""));
  return [...new Set(names)];
}

/** The arguments as a model would give them; empty ones are left out. */
function argumentsOf(schema: Parameter[], given: Given): Record<string, unknown> {
  const pairs = schema.map(({ name, type }): [string, unknown] => {
    const value = given[name] ?? "";
    if (value === "") return [name, ""];
    if (type === "boolean") return [name, value === "true"];
    return [name, type === "array" ? String(value).split("\n").filter((line) => line !== "") : value];
  });
  return Object.fromEntries(pairs.filter(([, value]) => value !== ""));
}

export function TryTool({ tool, isStale = false, call }: {
  tool: Tried; isStale?: boolean; call(filled: Filled): Promise<Trial>;
}) {
  // A new parameter has no name yet while it is being written.
  const schema = (tool.schema ?? []).filter(({ name }) => name !== "");
  const [given, setGiven] = useState<Given>({});
  const [variables, setVariables] = useState<Record<string, string>>({});
  const [trial, setTrial] = useState<Trial | null>(null);
  const [error, setError] = useState<unknown>(null);
  const run = async (): Promise<void> => {
    setTrial(await call({ arguments: argumentsOf(schema, given), variables }));
    setError(null);
  };
  const fail = (failure: unknown): void => {
    setTrial(null);
    setError(failure);
  };
  const wrong = fieldErrors(error);
  return (
    <Card title="Try it">
      <div class="stack">
        {isStale && <Notice tone="warn">The tool is called as it was last saved.</Notice>}
        <Form submit="Call the endpoint" needs="build" error={error} onError={fail} onSubmit={run}>
          {schema.map((parameter) => (
            <Argument
              key={parameter.name} parameter={parameter} value={given[parameter.name] ?? null}
              error={wrong[`arguments.${parameter.name}`]}
              onInput={(value) => setGiven((before) => ({ ...before, [parameter.name]: value }))}
            />
          ))}
          {variablesOf(tool).map((name) => (
            <TextField
              key={name} label={`Variable ${name}`} value={variables[name] ?? ""}
              error={wrong[`variables.${name}`]}
              onInput={(text) => setVariables((before) => ({ ...before, [name]: text }))}
            />
          ))}
          <p><small>This is a real request: the endpoint does whatever it normally does.</small></p>
        </Form>
        {trial && <Outcome trial={trial} />}
      </div>
    </Card>
  );
}

function Argument({ parameter, value, error, onInput }: {
  parameter: Parameter; value: string | number | null; error: string | undefined;
  onInput(value: string | number | null): void;
}) {
  const { name, type, description, enum: choices } = parameter;
  const field = { label: name, hint: description, error };
  const text = String(value ?? "");
  if (type === "array") {
    const hint = <>{description} One item per line.</>;
    return <TextArea {...field} hint={hint} rows={3} value={text} onInput={onInput} />;
  }
  if (choices || type === "boolean") {
    const options = choices
      ? choices.map((choice) => ({ value: String(choice), label: String(choice) }))
      : [{ value: "true", label: "Yes" }, { value: "false", label: "No" }];
    return (
      <SelectField
        {...field} value={text} onInput={onInput}
        options={[{ value: "", label: "Not given" }, ...options]}
      />
    );
  }
  if (type === "number") {
    return (
      <NumberField
        {...field} step={0.01} value={typeof value === "number" ? value : null} onInput={onInput}
      />
    );
  }
  return <TextField {...field} value={text} onInput={onInput} />;
}

function Outcome({ trial }: { trial: Trial }) {
  const { ok, duration_ms, request, response, result, error } = trial;
  return (
    <section class="tools-outcome stack" aria-label="Result">
      <div role="status">
        <Notice tone={ok ? "good" : "bad"}>
          <strong>{response ? `Status ${response.status}` : "No answer"}</strong>
          <span>{count(duration_ms)} ms</span>
        </Notice>
      </div>
      {error !== null && <p class="form-error">{error}</p>}
      <div>
        <h3>Sent</h3>
        <p><code><b>{request.method}</b> {request.url}</code></p>
        <HeaderList headers={request.headers} />
        {request.body !== null && <Text label="Request body" text={pretty(request.body)} />}
      </div>
      {response && (
        <div>
          <h3>Response</h3>
          <HeaderList headers={response.headers} />
          {response.body === ""
            ? <p><small>The body is empty.</small></p>
            : <Text label="Response body" text={pretty(response.body)} />}
        </div>
      )}
      <div>
        <h3>What the model receives</h3>
        <Text label="What the model receives" text={JSON.stringify(result, null, 2)} />
      </div>
    </section>
  );
}

const Text = ({ label, text }: { label: string; text: string }) =>
  <pre class="tools-text" tabIndex={0} aria-label={label}>{text}</pre>;

function HeaderList({ headers }: { headers: Record<string, string> }) {
  const rows = Object.entries(headers);
  return (
    <details class="tools-headers">
      <summary>{plural(rows.length, "{count} header", "{count} headers")}</summary>
      <dl>
        {rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
    </details>
  );
}
