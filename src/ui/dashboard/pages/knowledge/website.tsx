// Adding a website: its main address with pages it links to, or pages named one by one.
import { useState } from "preact/hooks";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Form, NumberField, TextArea, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";

const LINKS_MAX = 50;
const FOLLOWED_DEFAULT = 10;
const NAME_CHARS_MAX = 255;

const KINDS = [
  { value: "site", label: "A site and what it links to" },
  { value: "pages", label: "Single pages" },
] as const;
type Kind = (typeof KINDS)[number]["value"];

const linksOf = (text: string): string[] =>
  text.split(/\s+/).filter((link) => link !== "");

/** The server names a link by its place (`links.3.link`): this shows the link. */
function linksError(errors: Record<string, string>, links: string[]): string | undefined {
  const [field, text] = Object.entries(errors).find(([name]) => name.startsWith("links")) ?? [];
  const at = field?.match(/\d+/)?.[0];
  return at === undefined ? text : `${text ?? ""} (${links[Number(at)] ?? `line ${at}`})`;
}

export function WebsiteDialog({ knowledgebaseId, onDone, onClose }: {
  knowledgebaseId: number; onDone(): void; onClose(): void;
}) {
  const api = useApi();
  const [kind, setKind] = useState<Kind>("site");
  const [url, setUrl] = useState("");
  const [limit, setLimit] = useState<number | null>(FOLLOWED_DEFAULT);
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const links = linksOf(text);
  const first = (kind === "site" ? url : links[0] ?? "").trim();
  const save = async (): Promise<void> => {
    const source = kind === "site"
      ? { url: url.trim(), relative_links_limit: limit ?? FOLLOWED_DEFAULT }
      : { links: links.map((link) => ({ link })) };
    await unwrap(api.POST("/user/knowledgebases/{id}/documents", {
      params: { path: { id: knowledgebaseId } },
      body: {
        name: (name.trim() || first).slice(0, NAME_CHARS_MAX), type: "website", ...source,
      },
    }));
    onDone();
    onClose();
  };
  return (
    <Dialog title="Add a website" onClose={onClose}>
      <Form
        submit="Add" error={error} onCancel={onClose} onSubmit={() => save().catch(setError)}
      >
        <Kinds kind={kind} onInput={setKind} />
        {kind === "site" ? (
          <>
            <TextField
              label="Address" type="url" required value={url} onInput={setUrl}
              placeholder="https://example.org" error={errors.url}
            />
            <NumberField
              label="Pages to follow" min={1} max={50} value={limit} onInput={setLimit}
              hint="Links on the page that lead to the same site, 1 to 50"
              error={errors.relative_links_limit}
            />
          </>
        ) : (
          <TextArea
            label="Addresses" rows={6} value={text} onInput={setText}
            hint={`One a line, at most ${LINKS_MAX}; only these are read`}
            placeholder={"https://example.org/prices\nhttps://example.org/opening-hours"}
            error={linksError(errors, links) ?? errors.url}
          />
        )}
        <TextField
          label="Name" value={name} onInput={setName} maxLength={NAME_CHARS_MAX}
          hint="Empty: its address" error={errors.name} autoComplete="off"
        />
        <p class="soft">It is read once, now. Open it and press “Read again” to read it anew.</p>
      </Form>
    </Dialog>
  );
}

function Kinds({ kind, onInput }: { kind: Kind; onInput(kind: Kind): void }) {
  return (
    <fieldset>
      <legend class="hidden-visually">What to read</legend>
      <div class="knowledge-kinds">
        {KINDS.map(({ value, label }) => (
          <label key={value}>
            <input
              type="radio" name="kind" value={value} checked={kind === value}
              onChange={() => onInput(value)}
            />
            {label}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
