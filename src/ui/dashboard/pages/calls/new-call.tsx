// Dialogs that start a call: an outbound assistant dials a number, or the server's own caller rings
// an inbound assistant. Both lead to the page of the new call.
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, Form, SelectField, TextArea, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { Loaded } from "#ui/dashboard/kit/layout.tsx";
import { useAssistants, type Assistant } from "#ui/dashboard/data/lists.ts";
import { namedOptions } from "#ui/dashboard/kit/by-name.ts";

interface DialogProps {
  onClose(): void;
}

type Pair = [name: string, value: string];

/** Fields without a name are not sent. */
const variablesOf = (pairs: Pair[]): Record<string, string> =>
  Object.fromEntries(
    pairs.map(([name, value]) => [name.trim(), value]).filter(([name]) => name !== ""));

const fitting = (assistants: Assistant[], type: string): Assistant[] =>
  assistants.filter((one) => one.type === type && one.status === "active");

/** What both dialogs share: sending the call and going to its page. */
function useNewCall<Body extends object>(
  body: Body,
  send: (asked: { body: Body }) => Promise<{ call_id: number }>,
) {
  const [, navigate] = useLocation();
  const [error, setError] = useState<unknown>(null);
  const onSubmit = async (): Promise<void> => {
    const { call_id: id } = await send({ body });
    navigate(`/calls/${id}`);
  };
  return { error, onError: setError, onSubmit };
}

export function MakeCall({ onClose }: DialogProps) {
  const assistants = useAssistants();
  return (
    <Dialog title="New call" onClose={onClose}>
      <Loaded data={assistants}>
        {(all) => <MakeForm assistants={fitting(all, "outbound")} onClose={onClose} />}
      </Loaded>
    </Dialog>
  );
}

function MakeForm({ assistants, onClose }: DialogProps & { assistants: Assistant[] }) {
  const api = useApi();
  const [assistant, setAssistant] = useState(String(assistants[0]?.id ?? ""));
  const [number, setNumber] = useState("");
  const [variables, setVariables] = useState<Pair[]>([]);
  const sending = useNewCall({
    assistant_id: Number(assistant), phone_number: number.trim(),
    variables: variablesOf(variables),
  }, (asked) => unwrap(api.POST("/user/make_call", asked)));
  const errors = fieldErrors(sending.error);
  if (assistants.length === 0) return <NoAssistant type="outbound" />;
  return (
    <Form submit="Call" {...sending} onCancel={onClose}>
      <SelectField
        label="Assistant" value={assistant} onInput={setAssistant} error={errors.assistant_id}
        options={namedOptions(assistants)}
      />
      <TextField
        label="Phone number" type="tel" required value={number} onInput={setNumber}
        placeholder="+15550100123" hint="With country code" error={errors.phone_number}
        maxLength={255} autoComplete="off"
      />
      <Variables pairs={variables} onInput={setVariables} error={errors.variables} />
    </Form>
  );
}

export function TryCall({ onClose }: DialogProps) {
  const assistants = useAssistants();
  return (
    <Dialog title="Try an assistant" onClose={onClose}>
      <Loaded data={assistants}>
        {(all) => <TryForm assistants={fitting(all, "inbound")} onClose={onClose} />}
      </Loaded>
    </Dialog>
  );
}

const LINES = "Hello. When are you open?\nThank you, goodbye.";

function TryForm({ assistants, onClose }: DialogProps & { assistants: Assistant[] }) {
  const api = useApi();
  const [assistant, setAssistant] = useState(String(assistants[0]?.id ?? ""));
  const [number, setNumber] = useState("");
  const [lines, setLines] = useState(LINES);
  const [variables, setVariables] = useState<Pair[]>([]);
  const said = lines.split("\n").map((line) => line.trim()).filter(Boolean);
  const sending = useNewCall({
    assistant_id: Number(assistant), variables: variablesOf(variables),
    ...(number.trim() ? { phone_number: number.trim() } : {}),
    ...(said.length > 0 ? { lines: said } : {}),
  }, (asked) => unwrap(api.POST("/user/try_call", asked)));
  const errors = fieldErrors(sending.error);
  if (assistants.length === 0) return <NoAssistant type="inbound" />;
  return (
    <Form submit="Ring" {...sending} onCancel={onClose}>
      <p class="soft">The server's own caller calls the assistant: no telephone is needed. It costs as much as any call.</p>
      <SelectField
        label="Assistant" value={assistant} onInput={setAssistant} error={errors.assistant_id}
        options={namedOptions(assistants)}
      />
      <TextArea
        label="What the caller says" rows={4} value={lines} onInput={setLines}
        hint="One line per turn, said when the assistant is silent" error={errors.lines}
      />
      <TextField
        label="Number it calls from" type="tel" value={number} onInput={setNumber}
        placeholder="+15550100000" error={errors.phone_number} maxLength={255} autoComplete="off"
      />
      <Variables pairs={variables} onInput={setVariables} error={errors.variables} />
    </Form>
  );
}

const NoAssistant = ({ type }: { type: "inbound" | "outbound" }) => type === "inbound"
  ? <p>No inbound assistant is active. <a href="#/assistants">Create or enable one</a> first.</p>
  : <p>No outbound assistant is active. <a href="#/assistants">Create or enable one</a> first.</p>;

function Variables({ pairs, onInput, error }: {
  pairs: Pair[]; error: string | undefined; onInput(pairs: Pair[]): void;
}) {
  return (
    <fieldset class="calls-variables">
      <legend>Variables</legend>
      <small>Filled in for {"{{name}}"} in the greeting and the prompt.</small>
      {pairs.map(([name, value], index) => (
        <div key={index} class="calls-variable">
          <TextField
            label={`Name of variable ${index + 1}`} hidesLabel placeholder="name" value={name}
            maxLength={64} autoComplete="off"
            onInput={(text) => onInput(pairs.with(index, [text, value]))}
          />
          <TextField
            label={`Value of variable ${index + 1}`} hidesLabel placeholder="value" value={value}
            autoComplete="off" onInput={(text) => onInput(pairs.with(index, [name, text]))}
          />
          <Button
            kind="quiet" icon="close" label={`Remove variable ${index + 1}`}
            onClick={() => onInput(pairs.toSpliced(index, 1))}
          />
        </div>
      ))}
      {error && <small class="form-error">{error}</small>}
      <Button icon="add" onClick={() => onInput([...pairs, ["", ""]])}>Add variable</Button>
    </fieldset>
  );
}
