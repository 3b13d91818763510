// What is done to several conversations of the list at once: which ones are chosen, and the bar
// that deletes and labels them and gives them as a file. Used by conversations.tsx.
import { useCallback, useEffect, useState } from "preact/hooks";
import type { Frame } from "#client/client.ts";
import { useEvents } from "#ui/dashboard/data/live.tsx";
import type { Rows } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, SelectField, useWork } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, Dialog, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { download } from "#ui/dashboard/kit/download.ts";
import { Notice } from "#ui/dashboard/kit/layout.tsx";
import { csvOf } from "#ui/dashboard/kit/list-tools.tsx";
import type { Choice } from "#ui/dashboard/kit/table.tsx";
import { plural, t } from "#ui/dashboard/kit/texts.ts";
import { useLabels } from "#ui/dashboard/pages/assistants/lookups.ts";

/** As many as the API takes at once. */
const MANY_MAX = 100;
/** So many are named in a question; the others are counted. */
const NAMED_MAX = 5;

interface Listed {
  id: string;
}

interface Chosen<T> {
  rows: T[];
  choice: Choice<T>;
  drop(ids: string[]): void;
  clear(): void;
}

/** Another `key` is another list, of which nothing is chosen. */
export function useChosen<T extends Listed>(key: string, nameOf: (row: T) => string): Chosen<T> {
  const [rows, setRows] = useState<T[]>([]);
  const drop = useCallback((ids: string[]) => {
    setRows((before) => before.filter(({ id }) => !ids.includes(id)));
  }, []);
  const clear = useCallback(() => setRows([]), []);
  useEffect(clear, [key, clear]);
  useEvents(["conversation_deleted"], useCallback((frame: Frame) => {
    if ("conversation_id" in frame) drop([String(frame.conversation_id)]);
  }, [drop]));
  const ids = new Set(rows.map(({ id }) => id));
  return {
    rows, drop, clear,
    choice: {
      has: ({ id }) => ids.has(id),
      isFull: rows.length >= MANY_MAX,
      label: (row) => t(`Choose ${nameOf(row)}`),
      set: (some, isOn) => {
        const kept = rows.filter(({ id }) => !some.some((row) => row.id === id));
        setRows(isOn ? [...kept, ...some].slice(0, MANY_MAX) : kept);
      },
    },
  };
}

interface BulkProps<T> {
  chosen: Chosen<T>;
  list: Rows<T>;
  nameOf(row: T): string;
  onDeleted(): void;
}

type Asked = "delete" | "label" | null;

export function BulkBar<T extends Listed>(props: BulkProps<T>) {
  const { chosen: { rows, clear }, list, nameOf } = props;
  const [asked, setAsked] = useState<Asked>(null);
  const [busy, setBusy] = useState<T[]>([]);
  const close = (): void => setAsked(null);
  const save = (): void => {
    download(new Blob([csvOf(asListed(rows, list))], { type: "text/csv" }), "conversations.csv");
  };
  return (
    <>
      {busy.length > 0 && (
        <Notice tone="warn">
          <span>
            A reply is being written or a call is held in these, so they stay:
            {" "}{namesOf(busy, nameOf, MANY_MAX)}
          </span>
          <button type="button" class="quiet" onClick={() => setBusy([])}>Dismiss</button>
        </Notice>
      )}
      {rows.length > 0 && (
        <div class="conversations-bulk" role="group" aria-label="Chosen conversations">
          <strong role="status">{plural(rows.length, "{count} chosen", "{count} chosen")}</strong>
          {rows.length >= MANY_MAX && <small>More cannot be chosen at once.</small>}
          <Button needs="answer" onClick={() => setAsked("label")}>Label</Button>
          <Button onClick={save}>Export as CSV</Button>
          <Button needs="build" kind="danger" onClick={() => setAsked("delete")}>Delete</Button>
          <Button kind="quiet" icon="close" onClick={clear}>Choose none</Button>
        </div>
      )}
      {asked === "delete" && <DeleteMany {...props} onBusy={setBusy} onClose={close} />}
      {asked === "label" && <LabelMany ids={rows.map(({ id }) => id)} onClose={close} />}
    </>
  );
}

/** The list may have changed since they were chosen. */
function asListed<T extends Listed>(rows: T[], list: Rows<T>): T[] {
  const now = new Map<string, T>();
  for (let at = 0; at < (list.count ?? 0); at += 1) {
    const row = list.at(at);
    if (row) now.set(row.id, row);
  }
  return rows.map((row) => now.get(row.id) ?? row);
}

function namesOf<T>(rows: T[], nameOf: (row: T) => string, most: number): string {
  const named = rows.slice(0, most).map(nameOf).join(", ");
  const rest = rows.length - most;
  return rest > 0
    ? plural(rest, "{names} and {count} more", "{names} and {count} more", { names: named }) : named;
}

function DeleteMany<T extends Listed>(props: BulkProps<T> & {
  onBusy(rows: T[]): void; onClose(): void;
}) {
  const { chosen: { rows, drop }, nameOf, onDeleted, onBusy, onClose } = props;
  const api = useApi();
  const toasts = useToasts();
  // The question stands as it was put, whatever is deleted elsewhere meanwhile.
  const [some] = useState(rows);
  const remove = async (): Promise<void> => {
    const { deleted, busy } = await unwrap(api.POST("/user/conversations/bulk-delete", {
      body: { conversation_ids: some.map(({ id }) => id) },
    }));
    onBusy(some.filter(({ id }) => busy.includes(id)));
    drop(some.map(({ id }) => id).filter((id) => !busy.includes(id)));
    toasts.notify(plural(
      deleted.length, "{count} conversation is deleted.", "{count} conversations are deleted."));
    onDeleted();
  };
  return (
    <Confirm
      title={plural(some.length, "Delete {count} conversation?", "Delete {count} conversations?")}
      action="Delete" onConfirm={remove} onClose={onClose}
    >
      {namesOf(some, nameOf, NAMED_MAX)}:
      {" "}<strong>their messages, files, notes and labels go for good.</strong>
      {" "}What they cost stays in the ledger.
    </Confirm>
  );
}

function LabelMany({ ids, onClose }: { ids: string[]; onClose(): void }) {
  const api = useApi();
  const toasts = useToasts();
  const labels = useLabels().value;
  const [label, setLabel] = useState("");
  const { isBusy, run } = useWork((error) => toasts.fail(error));
  const id = Number(label || labels?.[0]?.id);
  const give = (remove: boolean) => run(async () => {
    const { changed } = await unwrap(api.POST("/user/conversations/bulk-label", {
      body: { conversation_ids: ids, label_id: id, remove },
    }));
    toasts.notify(remove
      ? plural(changed.length,
        "{count} conversation lost the label.", "{count} conversations lost the label.")
      : plural(changed.length,
        "{count} conversation got the label.", "{count} conversations got the label."));
    onClose();
  });
  return (
    <Dialog
      title={plural(ids.length, "Label {count} conversation", "Label {count} conversations")}
      onClose={onClose}
    >
      {labels?.length === 0
        ? <p>There are no labels yet: they are made by <code>POST /user/label</code>.</p>
        : (
          <SelectField
            label="Label" value={String(id)} onInput={setLabel}
            options={(labels ?? []).map((one) => ({ value: String(one.id), label: one.name }))}
          />
        )}
      <div class="form-actions">
        <Button isBusy={isBusy} disabled={!labels?.length} onClick={() => give(true)}>
          Take away
        </Button>
        <Button
          kind="main" isBusy={isBusy} disabled={!labels?.length} onClick={() => give(false)}
        >
          Give
        </Button>
      </div>
    </Dialog>
  );
}
