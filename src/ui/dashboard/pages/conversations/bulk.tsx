// The bar for the selected conversations of the list: deletes them, labels them or exports them as
// a file. Used by conversations.tsx.
import { useState } from "preact/hooks";
import type { Rows } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import {
  ChosenBar, NAMED_MAX, namesOf, type Chosen, type Listed,
} from "#ui/dashboard/kit/chosen.tsx";
import { Button, SelectField } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, Dialog, useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Notice } from "#ui/dashboard/kit/layout.tsx";
import { ExportChosen } from "#ui/dashboard/kit/list-tools.tsx";
import { plural } from "#ui/dashboard/kit/texts.ts";
import { useLabels } from "#ui/dashboard/pages/assistants/lookups.ts";

interface BulkProps<T extends Listed<string>> {
  chosen: Chosen<T>;
  list: Rows<T>;
  nameOf(row: T): string;
  onDeleted(): void;
}

type Asked = "delete" | "label" | null;

export function BulkBar<T extends Listed<string>>(props: BulkProps<T>) {
  const { chosen, list, nameOf } = props;
  const { rows } = chosen;
  const [asked, setAsked] = useState<Asked>(null);
  const [busy, setBusy] = useState<T[]>([]);
  const close = (): void => setAsked(null);
  return (
    <>
      {busy.length > 0 && (
        <Notice tone="warn">
          <span>
            A reply or a call is in progress in these, so they were not
            deleted: {namesOf(busy, nameOf, Infinity)}
          </span>
          <button type="button" class="quiet" onClick={() => setBusy([])}>Dismiss</button>
        </Notice>
      )}
      <ChosenBar label="Selected conversations" chosen={chosen}>
        <Button needs="answer" onClick={() => setAsked("label")}>Label</Button>
        <ExportChosen name="conversations" rows={rows} list={list} />
        <Button needs="build" kind="danger" onClick={() => setAsked("delete")}>Delete</Button>
      </ChosenBar>
      {asked === "delete" && <DeleteMany {...props} onBusy={setBusy} onClose={close} />}
      {asked === "label" && <LabelMany ids={rows.map(({ id }) => id)} onClose={close} />}
    </>
  );
}

function DeleteMany<T extends Listed<string>>(props: BulkProps<T> & {
  onBusy(rows: T[]): void; onClose(): void;
}) {
  const { chosen: { rows, drop }, nameOf, onDeleted, onBusy, onClose } = props;
  const api = useApi();
  const toasts = useToasts();
  // The question keeps naming the same conversations, whatever is deleted elsewhere meanwhile.
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
      {" "}<strong>their messages, files, notes and labels are deleted for good.</strong>
      {" "}What they cost stays in the ledger.
    </Confirm>
  );
}

function LabelMany({ ids, onClose }: { ids: string[]; onClose(): void }) {
  const api = useApi();
  const toasts = useToasts();
  const labels = useLabels().value;
  const [label, setLabel] = useState("");
  const { isBusy, run } = useToastedWork();
  const id = Number(label || labels?.[0]?.id);
  const set = (some: string[], remove: boolean) =>
    unwrap(api.POST("/user/conversations/bulk-label", {
      body: { conversation_ids: some, label_id: id, remove },
    }));
  const give = (remove: boolean) => run(async () => {
    const { changed } = await set(ids, remove);
    toasts.notify(remove
      ? plural(changed.length,
        "{count} conversation no longer has the label.", "{count} conversations no longer have the label.")
      : plural(changed.length,
        "{count} conversation got the label.", "{count} conversations got the label."),
    changed.length > 0 ? () => set(changed, !remove) : undefined);
    onClose();
  });
  return (
    <Dialog
      title={plural(ids.length, "Label {count} conversation", "Label {count} conversations")}
      onClose={onClose}
    >
      {labels?.length === 0
        ? <p>There are no labels yet: create them with <code>POST /user/label</code>.</p>
        : (
          <SelectField
            label="Label" value={String(id)} onInput={setLabel}
            options={(labels ?? []).map((one) => ({ value: String(one.id), label: one.name }))}
          />
        )}
      <div class="form-actions">
        <Button isBusy={isBusy} disabled={!labels?.length} onClick={() => give(true)}>
          Remove
        </Button>
        <Button
          kind="main" isBusy={isBusy} disabled={!labels?.length} onClick={() => give(false)}
        >
          Add
        </Button>
      </div>
    </Dialog>
  );
}
