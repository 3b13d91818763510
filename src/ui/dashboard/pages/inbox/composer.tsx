// A person's reply to a visitor: typed, drafted by the assistant, or a canned one. Text that could
// not be sent is not lost, and no message is sent twice.
import { useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import type { Parley } from "#client/client.ts";
import { pendingOf } from "#ui/dashboard/data/new-key.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import {
  Button, SelectField, sentByEnter, TextArea, tooLong,
} from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Notice } from "#ui/dashboard/kit/layout.tsx";
import type { Summary } from "#ui/dashboard/pages/conversations/conversations.tsx";
import type { Talk } from "#ui/dashboard/pages/conversations/talk.ts";
import { AttachButton, AttachedFiles, useAttaching } from "./attaching.tsx";
import { SaveReply } from "./save-reply.tsx";
import {
  isEmpty, keepUnsent, unsentOf, type Attached, type Unsent, type UnsentTexts,
} from "./unsent.ts";

const MESSAGE_CHARS_MAX = 2000;
/** How often at most the visitor is told that somebody is typing. */
const TYPING_PAUSE_MS = 4000;

const unsent = new WeakMap<Parley, UnsentTexts>();

function useUnsent(uuid: string) {
  const api = useApi();
  const toasts = useToasts();
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const all: UnsentTexts = unsent.get(api) ?? new Map();
  unsent.set(api, all);
  const read = (): Unsent => unsentOf(all, uuid);
  const change = (part: Partial<Unsent>): void => {
    keepUnsent(all, uuid, { ...read(), ...part });
    draw(undefined);
  };
  const setText = (text: string): void => change({ text });
  const attach = (file: Attached): void => change({ files: [...read().files, file] });
  const detach = (file: Attached): void =>
    change({ files: read().files.filter(({ id }) => id !== file.id) });
  /** Replaces what was typed, which can be undone. */
  const replace = (text: string): void => {
    const before = read().text;
    setText(text);
    if (before.trim() === "" || before === text) return;
    toasts.notify("It replaces what you had written.", () => setText(before));
  };
  const send = async (): Promise<void> => {
    if (isEmpty(read())) return;
    const { text, files, pending: tried } = read();
    const attachments = files.map(({ id }) => id);
    const pending = pendingOf(tried, JSON.stringify([text, attachments]));
    keepUnsent(all, uuid, { text, files, pending });
    await unwrap(api.POST("/user/conversations/{uuid}/messages", {
      params: { path: { uuid }, header: { "Idempotency-Key": pending.key } },
      body: { message: text, attachments },
    }));
    const now = read();
    change({
      // Keeps what was typed during the request, without what was sent.
      text: now.text.startsWith(text) ? now.text.slice(text.length) : now.text,
      files: now.files.filter((file) => !files.includes(file)), pending: null,
    });
  };
  return { read, setText, attach, detach, replace, send };
}

const filled = (text: string, variables: Record<string, string>): string =>
  text.replaceAll(/\{\{\s*([^{}]+?)\s*\}\}/g, (whole, name: string) => variables[name] ?? whole);

interface ComposerProps {
  uuid: string;
  row: Summary;
  talk: Talk;
  /** Somebody else has the conversation. */
  isOthers: boolean;
  /** A passage to be put into the reply; another object each time. */
  found: { text: string } | null;
}

export function Composer({ uuid, row, talk, isOthers, found }: ComposerProps) {
  const api = useApi();
  const { read, setText, attach, detach, replace, send: sendWritten } = useUnsent(uuid);
  const { text, files } = read();
  const attaching = useAttaching(uuid, () => read().files, attach);
  const [isSaving, setSaving] = useState(false);
  const sending = useToastedWork();
  const draft = useDraft(uuid, row, talk);
  const canned = useData("canned-replies", () => unwrap(api.GET("/user/canned-replies")));
  const showTyping = useTyping(row);
  const type = (next: string): void => {
    setText(next);
    if (next !== "") showTyping();
  };
  const isBusy = sending.isBusy || attaching.isBusy;
  const send = (): void => {
    if (!isBusy && tooLong(text, MESSAGE_CHARS_MAX) === null) sending.run(sendWritten);
  };
  // A found passage is added after the text, before anything more is typed behind it.
  useLayoutEffect(() => {
    if (found) setText([text, found.text].filter(Boolean).join("\n"));
  }, [found]);
  if (isOthers) {
    return <Notice>You can add a note meanwhile, and write once it is handed back.</Notice>;
  }
  return (
    <>
      <form
        class="inbox-composer" aria-label="Reply" onPaste={attaching.paste} {...sentByEnter(send)}
      >
        <TextArea
          label="Your reply" value={text} onInput={type} rows={3} maxLength={MESSAGE_CHARS_MAX}
          placeholder="Enter sends, Shift+Enter starts a new line"
        />
        <AttachedFiles files={files} onRemove={detach} />
        <div class="inbox-tools">
          <CannedReplies replies={canned.value?.data ?? []} row={row} onChosen={replace} />
          {text.trim() !== "" && (
            <Button kind="quiet" needs="answer" onClick={() => setSaving(true)}>Save as canned reply</Button>
          )}
          {draft && <DraftButton draft={draft} onDrafted={replace} />}
          <AttachButton attaching={attaching} />
          <Button kind="main" needs="answer" type="submit" isBusy={isBusy}>Send</Button>
        </div>
      </form>
      {/* Outside the form: submitting the dialog would also send the reply to the visitor. */}
      {isSaving && (
        <SaveReply text={text} onClose={() => setSaving(false)} onSaved={() => canned.reload()} />
      )}
    </>
  );
}

function DraftButton({ draft, onDrafted }: {
  draft: () => Promise<string>; onDrafted(text: string): void;
}) {
  const { isBusy, run } = useToastedWork();
  return (
    <Button needs="answer" isBusy={isBusy} onClick={() => run(async () => onDrafted(await draft()))}>
      AI draft
    </Button>
  );
}

function CannedReplies({ replies, row, onChosen }: {
  replies: { shortcut: string; text: string }[]; row: Summary; onChosen(text: string): void;
}) {
  return (
    <SelectField
      label="Canned reply" hidesLabel value=""
      options={[
        { value: "", label: "Canned replies" },
        ...replies.map(({ shortcut }) => ({ value: shortcut, label: shortcut })),
      ]}
      onInput={(shortcut) => {
        const reply = replies.find((one) => one.shortcut === shortcut);
        if (reply) onChosen(filled(reply.text, row.variables ?? {}));
      }}
    />
  );
}

/** Tells the visitor now and then, while it goes on, that somebody is typing. */
function useTyping({ id: uuid, desk }: Summary): () => void {
  const api = useApi();
  const againAt = useRef(0);
  return () => {
    if (desk !== "person" || Date.now() < againAt.current) return;
    againAt.current = Date.now() + TYPING_PAUSE_MS;
    // It does not matter if this is lost.
    api.POST("/user/conversations/{uuid}/typing", {
      params: { path: { uuid } }, body: { typing: true },
    }).catch(() => undefined);
  };
}

/** Asks the assistant in a separate conversation; null: no message to answer, or no assistant. */
function useDraft(uuid: string, row: Summary, talk: Talk): (() => Promise<string>) | null {
  const api = useApi();
  const { value: assistants } = useAssistants();
  const asked = talk.items.findLast(({ role }) => role === "user")?.text;
  const assistant = assistants?.find((one) => one.uuid === row.assistant_id);
  if (asked === undefined || !assistant) return null;
  return async () => {
    const { reply } = await unwrap(api.POST("/user/ai/generate-reply", {
      body: {
        assistant_id: assistant.id, customer_identifier: `suggestion:${uuid}`, message: asked,
        ...(row.variables ? { variables: row.variables } : {}),
      },
    }));
    return reply;
  };
}
