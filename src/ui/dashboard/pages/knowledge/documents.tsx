// The documents of a knowledgebase with their states, and one of them in a dialog: its extracted
// text, reading it again, and editing what was written by hand.
import { useState } from "preact/hooks";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import type { Data } from "#ui/dashboard/data/use-data.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, Dialog, useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { count, when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Empty, Facts, Notice, Status } from "#ui/dashboard/kit/layout.tsx";
import { said } from "#ui/dashboard/kit/said.ts";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { Chunks } from "./chunks.tsx";
import { NameForm } from "./name-form.tsx";
import { siteFacts, SiteSettings } from "./site-fields.tsx";
import { isWritten, type Document } from "./types.ts";
import { ChangeWritten } from "./written.tsx";

const COLUMNS: Column<Document>[] = [
  {
    title: "Name", grow: 1.15,
    cell: ({ name, failure_reason: reason, description }) => (
      <TwoLines
        main={name} sub={reason === null ? description : said(reason)} isBad={reason !== null}
      />
    ),
  },
  { title: "Status", cell: ({ status }) => <Status code={status} />, fits: "9.8rem" },
  {
    title: "Type", priority: 2, fits: "8.4rem", isWords: true,
    cell: ({ type_label: type }) => t(type),
  },
  {
    title: "Pages", align: "end", priority: 2, fits: "5.4rem",
    cell: ({ status, pages }) => status === "active" ? count(pages) : "–",
  },
  {
    title: "Characters", align: "end", priority: 3, fits: "7.2rem",
    cell: ({ status, characters }) => status === "active" ? count(characters) : "–",
  },
  {
    title: "Added", align: "end", priority: 3, fits: "7.8rem",
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
            Drop files above, add a website, or write down what people ask most.
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

type Mode = "shown" | "renaming" | "deleting" | "writing" | "site";

function DocumentDialog({ knowledgebaseId: id, document, onChange, onClose }: {
  knowledgebaseId: number; document: Document; onChange(): void; onClose(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const [mode, setMode] = useState<Mode>("shown");
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
  if (mode === "writing") {
    return (
      <ChangeWritten
        knowledgebaseId={id} document={document} onDone={onChange} onClose={() => setMode("shown")}
      />
    );
  }
  if (mode === "site") {
    return (
      <SiteSettings
        knowledgebaseId={id} document={document} onDone={onChange} onClose={() => setMode("shown")}
      />
    );
  }
  return (
    <Dialog title={document.name} isWide onClose={onClose}>
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
          <Trouble document={document} />
          <About document={document} />
          <Actions knowledgebaseId={id} document={document} onMode={setMode} onDone={onChange} />
          {document.status !== "failed" && (
            <Chunks
              // Reloads the chunks once the document has been read again.
              key={document.updated_at} knowledgebaseId={id} documentId={document.id}
            />
          )}
        </>
      )}
    </Dialog>
  );
}

function Actions({ knowledgebaseId, document, onMode, onDone }: {
  knowledgebaseId: number; document: Document; onMode(mode: Mode): void; onDone(): void;
}) {
  return (
    <div class="form-actions">
      <Button needs="build" onClick={() => onMode("deleting")}>Delete</Button>
      <Button needs="build" onClick={() => onMode("renaming")}>Rename</Button>
      {isWritten(document) && (
        <Button
          needs="build" disabled={document.status === "processing"}
          onClick={() => onMode("writing")}
        >
          Edit
        </Button>
      )}
      {document.type === "website" && (
        <Button needs="build" onClick={() => onMode("site")}>How it is read</Button>
      )}
      {mayReadAgain(document) && (
        <ReadAgain knowledgebaseId={knowledgebaseId} document={document} onDone={onDone} />
      )}
    </div>
  );
}

function Trouble({ document: { status, failure_reason: reason } }: { document: Document }) {
  if (reason === null) return null;
  return status === "failed"
    ? <Notice tone="bad">{said(reason)}</Notice>
    : <Notice tone="warn">Not read again: {said(reason)} What was read before is still found.</Notice>;
}

const mayReadAgain = ({ status, type }: Document): boolean =>
  status === "failed" || (status === "active" && type === "website");

function ReadAgain({ knowledgebaseId: id, document, onDone }: {
  knowledgebaseId: number; document: Document; onDone(): void;
}) {
  const api = useApi();
  const { isBusy, run } = useToastedWork();
  return (
    <Button
      kind="main" needs="build" isBusy={isBusy}
      onClick={() => run(async () => {
        await unwrap(api.POST("/user/knowledgebases/{id}/documents/{document_id}/read", {
          params: { path: { id, document_id: document.id } },
        }));
        onDone();
      })}
    >
      {document.status === "failed" ? "Try again" : "Read again"}
    </Button>
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
          ["Type", t(type)],
          ["Pages", status === "active" ? count(pages) : "–"],
          ["Characters", status === "active" ? count(characters) : "–"],
          ["Added", whenExactly(at)],
          ...siteFacts(document),
        ]}
      />
    </>
  );
}
