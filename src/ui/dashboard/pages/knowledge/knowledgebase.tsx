// One knowledgebase: its documents, adding more, and the assistants that use it.
import { useCallback, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { PageProps } from "#ui/dashboard/page.ts";
import { Needs } from "#ui/dashboard/data/rights.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Card, Loaded, Page, Status } from "#ui/dashboard/kit/layout.tsx";
import { Documents } from "./documents.tsx";
import { NameDialog } from "./name-form.tsx";
import { TrySearch } from "./search.tsx";
import { CHANGES, type Knowledgebase } from "./types.ts";
import { Uploads } from "./uploads.tsx";
import { Users } from "./users.tsx";
import { WebsiteDialog } from "./website.tsx";
import { WriteDialog } from "./written.tsx";
import "./knowledge.css";
import { plural } from "#ui/dashboard/kit/texts.ts";

const BACK = { href: "#/knowledgebases", label: "Knowledge" };

export function KnowledgebasePage({ params }: PageProps) {
  return <One key={params.id} id={Number(params.id)} />;
}

function One({ id }: { id: number }) {
  const api = useApi();
  const path = { path: { id } };
  const data = useData(`knowledgebase ${id}`, async () =>
    (await unwrap(api.GET("/user/knowledgebases/{id}", { params: path }))).data, CHANGES);
  const { value, reload } = data;
  return (
    <Page
      title={value?.name ?? "Knowledgebase"} back={BACK}
      actions={value && <Actions knowledgebase={value} onChange={reload} />}
    >
      <Loaded data={data}>{(found) => <Opened knowledgebase={found} onChange={reload} />}</Loaded>
    </Page>
  );
}

function Opened({ knowledgebase, onChange }: {
  knowledgebase: Knowledgebase; onChange(): void;
}) {
  const { id, description } = knowledgebase;
  const api = useApi();
  const [adding, setAdding] = useState<"website" | "text" | "faq" | null>(null);
  const documents = useData(`documents ${id}`, async () =>
    (await unwrap(api.GET("/user/knowledgebases/{id}/documents", {
      params: { path: { id } },
    }))).data, CHANGES);
  useFocusReload(documents.reload);
  const changed = useCallback(() => {
    documents.reload();
    onChange();
  }, [documents.reload, onChange]);
  return (
    <>
      {description && <p class="knowledge-about">{description}</p>}
      <Needs right="build">
        <Card
          title="Add documents" class="knowledge-add"
          actions={(
            <>
              <Button icon="add" onClick={() => setAdding("website")}>Add a website</Button>
              <Button icon="add" onClick={() => setAdding("text")}>Write a text</Button>
              <Button icon="add" onClick={() => setAdding("faq")}>Add questions</Button>
            </>
          )}
        >
          <Uploads knowledgebaseId={id} onDone={changed} />
        </Card>
      </Needs>
      <Card title="Documents" class="flush">
        <Documents knowledgebaseId={id} documents={documents} onChange={changed} />
      </Card>
      {knowledgebase.documents_count > 0 && <TrySearch knowledgebaseId={id} />}
      <Users knowledgebaseId={id} onChange={onChange} />
      {adding === "website" && (
        <WebsiteDialog knowledgebaseId={id} onDone={changed} onClose={() => setAdding(null)} />
      )}
      {(adding === "text" || adding === "faq") && (
        <WriteDialog
          type={adding} knowledgebaseId={id} onDone={changed} onClose={() => setAdding(null)}
        />
      )}
    </>
  );
}

function Actions({ knowledgebase, onChange }: {
  knowledgebase: Knowledgebase; onChange(): void;
}) {
  const { id, name, status, documents_count: documents } = knowledgebase;
  const api = useApi();
  const toasts = useToasts();
  const [, navigate] = useLocation();
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const params = { path: { id } };
  return (
    <>
      <Status code={status} />
      <Button needs="build" onClick={() => setDialog("rename")}>Rename</Button>
      <Button kind="quiet" needs="build" onClick={() => setDialog("delete")}>Delete</Button>
      {dialog === "rename" && (
        <NameDialog
          title="Rename" submit="Save" value={knowledgebase} onClose={() => setDialog(null)}
          onSave={async (body) => {
            await unwrap(api.PATCH("/user/knowledgebases/{id}", { params, body }));
            onChange();
          }}
        />
      )}
      {dialog === "delete" && (
        <Confirm
          title={`Delete ${name}?`} action="Delete" onClose={() => setDialog(null)}
          onConfirm={async () => {
            await unwrap(api.DELETE("/user/knowledgebases/{id}", { params }));
            toasts.notify("Knowledgebase deleted");
            navigate("/knowledgebases");
          }}
        >
          {plural(
            documents, "Its document is deleted with it.", "Its {count} documents are deleted with it.",
          )} Assistants that use it continue without it. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}
