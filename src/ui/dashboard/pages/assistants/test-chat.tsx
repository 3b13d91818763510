// A real conversation to test the assistant with, free of charge and with unsaved changes:
// streamed, with its function calls, and with values for its variables.
import { useState } from "preact/hooks";
import { useMay } from "#ui/dashboard/data/rights.tsx";
import { Markdown } from "#ui/dashboard/kit/markdown.tsx";
import { Button, sentByEnter, TextArea, TextField, tooLong } from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork } from "#ui/dashboard/kit/dialog.tsx";
import { Card, Empty, Notice } from "#ui/dashboard/kit/layout.tsx";
import { useEnd } from "#ui/dashboard/kit/use-end.ts";
import type { Line, ToolCall } from "./chat.ts";
import { useDraft, type Draft } from "./draft.ts";
import { useChat, type Chat } from "./use-chat.ts";
import { variablesIn } from "./variables.ts";

const MESSAGE_CHARS_MAX = 2000;

type Given = Record<string, string>;

interface Test {
  chat: Chat;
  /** Values of variables, as they were written. */
  given: Given;
  setGiven(given: Given): void;
  /** The test uses unsaved changes. */
  isDraft: boolean;
}

/** One test, shared by all places of the page that show it. */
export function useTest({ record, unsaved }: Draft): Test {
  const mayBuild = useMay()("build") === null;
  const isDraft = unsaved !== null && mayBuild;
  const [given, setGiven] = useState<Given>({});
  return { chat: useChat(record, isDraft ? unsaved : null), given, setGiven, isDraft };
}

function ChatCard({ test: { chat, given, isDraft } }: { test: Test }) {
  const { changed, warnings } = useDraft();
  const filled = Object.fromEntries(Object.entries(given).filter(([, text]) => text !== ""));
  return (
    <Card
      class="assistants-chat" title="Test chat"
      actions={chat.conversation !== null && (
        <Button icon="add" onClick={() => chat.renew()}>New conversation</Button>
      )}
    >
      {changed.length > 0 && (
        <p class="assistants-draft"><small>{isDraft
          ? "The next reply uses your changes, which are not saved yet."
          : "The test uses what is saved, without your changes."}</small></p>
      )}
      {warnings.tool_ids && <Notice tone="warn">{warnings.tool_ids}</Notice>}
      <Log chat={chat} start={() => chat.start(filled)} />
      <Problem chat={chat} />
      <Composer chat={chat} send={(text) => chat.send(text, filled)} />
    </Card>
  );
}

/** Beside the settings, or below them where there is no room. */
export function TestPane({ test }: { test: Test }) {
  const { chat, given, setGiven } = test;
  return (
    <aside class="stack assistants-pane" aria-label="Test">
      <ChatCard test={test} />
      <details class="assistants-more">
        <summary>Test variables</summary>
        <Variables given={given} onChange={setGiven} isFixed={chat.conversation !== null} />
      </details>
    </aside>
  );
}

export function TestChat({ test }: { test: Test }) {
  const { record } = useDraft();
  const { chat, given, setGiven } = test;
  return (
    <div class="grid main-aside">
      <ChatCard test={test} />
      <div class="stack">
        <Variables given={given} onChange={setGiven} isFixed={chat.conversation !== null} />
        <Card title="Talk instead">
          <div class="stack">
            <p>The same assistant on a call, from this browser’s microphone. Calls cost.</p>
            <p><a class="button" href={`/talk/${record.uuid}`} target="_blank" rel="noopener">
              Talk by voice
            </a></p>
            {chat.conversation !== null && (
              <p><a href={`#/conversations/${chat.conversation}`}>This conversation’s record</a></p>
            )}
          </div>
        </Card>
      </div>
    </div>
  );
}

function Log({ chat, start }: { chat: Chat; start(): Promise<void> }) {
  const { lines, isBusy } = chat;
  const { list } = useEnd<HTMLDivElement>([lines]);
  if (chat.conversation === null && lines.length === 0) {
    return (
      <Empty icon="conversations" title="Talk with it as a customer would">
        <p>Nothing here is charged.</p>
        <Button isBusy={isBusy} onClick={() => void start()}>Start the conversation</Button>
      </Empty>
    );
  }
  const isWaiting = isBusy && lines.at(-1)?.role === "user";
  return (
    <div
      {...list} class="assistants-log" role="log" aria-label="Conversation" aria-busy={isBusy}
      tabIndex={0}
    >
      {lines.map((line, at) => <Said key={at} line={line} />)}
      {isWaiting && <p class="assistants-said assistant"><Dots /></p>}
    </div>
  );
}

const Dots = () => <span class="assistants-dots" role="img" aria-label="Writing"><i /><i /><i /></span>;

function Said({ line }: { line: Line }) {
  const { role, text, calls, state } = line;
  return (
    <div class={`assistants-said ${role}`}>
      <span class="hidden-visually">{role === "user" ? "You: " : "Assistant: "}</span>
      {calls.map((call) => <Called key={call.id} call={call} />)}
      {role === "assistant" ? <Markdown text={text} /> : <p>{text}</p>}
      {state === "writing" && text === "" && <Dots />}
      {state === "stopped" && <small>Stopped</small>}
      {state === "cut" && <small>Cut off at the maximum length of a reply</small>}
    </div>
  );
}

function Called({ call }: { call: ToolCall }) {
  const isDone = call.result !== undefined;
  return (
    <details class="assistants-called">
      <summary>
        <code>{call.name}</code> {isDone ? <small>done</small> : <span class="badge busy">Working</span>}
      </summary>
      <pre tabIndex={0} role="group" aria-label="Arguments">
        {JSON.stringify(call.arguments, null, 2)}
      </pre>
      {isDone && (
        <pre tabIndex={0} role="group" aria-label="Result">{JSON.stringify(call.result, null, 2)}</pre>
      )}
    </details>
  );
}

function Problem({ chat }: { chat: Chat }) {
  if (chat.problem === null) return null;
  return (
    <Notice tone="bad">
      <span>{chat.problem}</span>
      {chat.isPending && (
        <button type="button" class="quiet" onClick={() => void chat.retry()}>Try again</button>
      )}
    </Notice>
  );
}

function Composer({ chat, send }: { chat: Chat; send(text: string): Promise<boolean> }) {
  const stopping = useToastedWork();
  const [text, setText] = useState("");
  const submit = (): void => {
    const message = text.trim();
    if (message === "" || chat.isBusy || tooLong(text, MESSAGE_CHARS_MAX)) return;
    setText("");
    void send(message).then((isTaken) => {
      if (!isTaken) setText((now) => now || message);
    });
  };
  const isWriting = chat.isBusy && chat.isPending;
  return (
    <form class="assistants-composer" {...sentByEnter(submit)}>
      <TextArea
        label="Message" hidesLabel rows={1} placeholder="Write as a customer" value={text}
        onInput={setText} maxLength={MESSAGE_CHARS_MAX}
      />
      {isWriting
        ? <Button icon="stop" isBusy={stopping.isBusy} onClick={() => stopping.run(() => chat.stop())}>Stop</Button>
        : <Button kind="main" type="submit" disabled={chat.isBusy}>Send</Button>}
    </form>
  );
}

function Variables({ given, onChange, isFixed }: {
  given: Record<string, string>; onChange(given: Record<string, string>): void; isFixed: boolean;
}) {
  const { values } = useDraft();
  const defaults = (values.variables ?? {}) as Given;
  const names = [...new Set([
    ...Object.keys(defaults), ...variablesIn(values.initial_message, values.system_prompt),
  ])];
  if (names.length === 0) return null;
  return (
    <Card title="Variables">
      <fieldset class="stack" disabled={isFixed}>
        {names.map((name) => (
          <TextField
            key={name} label={name} value={given[name] ?? ""}
            placeholder={defaults[name] ?? ""}
            onInput={(text) => onChange({ ...given, [name]: text })}
          />
        ))}
      </fieldset>
      {isFixed && <p><small>Start a new conversation to change them.</small></p>}
    </Card>
  );
}
