// The documents of a knowledgebase with what became of each, and one of them in a dialog.
import { useState } from "preact/hooks";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import type { Data } from "#ui/dashboard/data/use-data.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, Dialog, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { count, when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Empty, Facts, Notice, Status } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { NameForm } from "./name-form.tsx";
import type { Document } from "./types.ts";

const COLUMNS: Column<Document>[] = [
  {
    title: "Name", grow: 2.6,
    cell: ({ name, failure_reason: reason, description }) => (
      <TwoLines main={name} sub={reason ?? description} isBad={reason !== null} />
    ),
  },
  { title: "Status", cell: ({ status }) => <Status code={status} />, grow: 1.2 },
  { title: "Type", cell: ({ type_label: type }) => type, priority: 2, grow: 0.8 },
  {
    title: "Pages", align: "end", priority: 2, grow: 0.7,
    cell: ({ status, pages }) => status === "active" ? count(pages) : "–",
  },
  {
    title: "Characters", align: "end", priority: 3,
    cell: ({ status, characters }) => status === "active" ? count(characters) : "–",
  },
  {
    title: "Added", align: "end", priority: 3,
    cell: ({ created_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
];

export function Documents({ knowledgebaseId, documents, onChange }: {
  knowledgebaseId: number; documents: Data<Document[]>; onChange(): void;
}) {
  const [openId, setOpenId] = useState<number | null>(null);
  const open = documents.value?.find(({ id }) => id === openId);
  return (
    <>
      <Table
        label="Documents" columns={COLUMNS} rowKey={({ id }) => id}
        rows={rowsOf(documents.value, documents.error, documents.reload)}
        onClick={({ id }) => setOpenId(id)}
        empty={(
          <Empty icon="upload" title="No documents yet">
            Drop files above, or add a website.
          </Empty>
        )}
      />
      {open && (
        <DocumentDialog
          knowledgebaseId={knowledgebaseId} document={open} onChange={onChange}
          onClose={() => setOpenId(null)}
        />
      )}
    </>
  );
}

function DocumentDialog({ knowledgebaseId: id, document, onChange, onClose }: {
  knowledgebaseId: number; document: Document; onChange(): void; onClose(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const [mode, setMode] = useState<"shown" | "renaming" | "deleting">("shown");
  const params = { path: { id, document_id: document.id } };
  if (mode === "deleting") {
    return (
      <Confirm
        title={`Delete ${document.name}?`} action="Delete" onClose={() => setMode("shown")}
        onConfirm={async () => {
          await unwrap(
            api.DELETE("/user/knowledgebases/{id}/documents/{document_id}", { params }));
          toasts.notify("Document deleted");
          onChange();
          onClose();
        }}
      >
        Assistants cannot look it up any more.
      </Confirm>
    );
  }
  return (
    <Dialog title={document.name} onClose={onClose}>
      {mode === "renaming" ? (
        <NameForm
          submit="Save" value={document} onClose={() => setMode("shown")}
          onSave={async (body) => {
            await unwrap(
              api.PATCH("/user/knowledgebases/{id}/documents/{document_id}", { params, body }));
            onChange();
          }}
        />
      ) : (
        <>
          {document.failure_reason !== null && (
            <Notice tone="bad">{document.failure_reason}</Notice>
          )}
          <About document={document} />
          <div class="form-actions">
            <Button onClick={() => setMode("deleting")}>Delete</Button>
            <Button onClick={() => setMode("renaming")}>Rename</Button>
          </div>
        </>
      )}
    </Dialog>
  );
}

function About({ document }: { document: Document }) {
  const { status, type_label: type, pages, characters, created_at: at, description } = document;
  return (
    <>
      {description && <p>{description}</p>}
      <Facts
        rows={[
          ["Status", <Status key="status" code={status} />],
          ["Type", type],
          ["Pages", status === "active" ? count(pages) : "–"],
          ["Characters", status === "active" ? count(characters) : "–"],
          ["Added", whenExactly(at)],
        ]}
      />
      {status === "failed" && (
        <p class="soft">Put right what was wrong, delete it here and add it again.</p>
      )}
    </>
  );
}
