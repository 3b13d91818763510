// Adding a website: its main address with pages it links to, the pages of its sitemap, or pages
// named one by one.
import { useState } from "preact/hooks";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Form, NumberField, TextArea, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { NEVER, rereadHours, SiteFields } from "./site-fields.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";

const LINKS_MAX = 50;
const FOLLOWED_DEFAULT = 10;
const SITEMAP_PAGES_DEFAULT = 100;
const SITEMAP_PAGES_MAX = 500;
const NAME_CHARS_MAX = 255;

const KINDS = [
  { value: "site", label: "A site and the pages it links to" },
  { value: "sitemap", label: "The pages of a sitemap" },
  { value: "pages", label: "Single pages" },
] as const;
type Kind = (typeof KINDS)[number]["value"];

const linksOf = (text: string): string[] =>
  text.split(/\s+/).filter((link) => link !== "");

/** The server names a link by its place (`links.3.link`): this shows the link. */
function linksError(errors: Record<string, string>, links: string[]): string | undefined {
  const [field, text] = Object.entries(errors).find(([name]) => name.startsWith("links")) ?? [];
  const at = field?.match(/\d+/)?.[0];
  return at === undefined ? text : `${text ?? ""} (${links[Number(at)] ?? t(`line ${at}`)})`;
}

export function WebsiteDialog({ knowledgebaseId, onDone, onClose }: {
  knowledgebaseId: number; onDone(): void; onClose(): void;
}) {
  const api = useApi();
  const [kind, setKind] = useState<Kind>("site");
  const [url, setUrl] = useState("");
  const [limit, setLimit] = useState<number | null>(FOLLOWED_DEFAULT);
  const [pages, setPages] = useState<number | null>(SITEMAP_PAGES_DEFAULT);
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const [site, setSite] = useState({ reread: NEVER, isOwn: false });
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const links = linksOf(text);
  const first = (kind === "pages" ? links[0] ?? "" : url).trim();
  const sources = {
    site: { url: first, relative_links_limit: limit ?? FOLLOWED_DEFAULT },
    sitemap: { sitemap_url: first, sitemap_pages_limit: pages ?? SITEMAP_PAGES_DEFAULT },
    pages: { links: links.map((link) => ({ link })) },
  };
  const save = async (): Promise<void> => {
    await unwrap(api.POST("/user/knowledgebases/{id}/documents", {
      params: { path: { id: knowledgebaseId } },
      body: {
        name: (name.trim() || first).slice(0, NAME_CHARS_MAX), type: "website", ...sources[kind],
        read_again_every_hours: rereadHours(site.reread), ignore_robots: site.isOwn,
      },
    }));
    onDone();
    onClose();
  };
  return (
    <Dialog title="Add a website" onClose={onClose}>
      <Form submit="Add" error={error} onError={setError} onCancel={onClose} onSubmit={save}>
        <Kinds kind={kind} onInput={setKind} />
        {kind !== "pages" && (
          <Address
            kind={kind} url={url} onUrl={setUrl} errors={errors}
            most={kind === "site" ? limit : pages}
            onMost={kind === "site" ? setLimit : setPages}
          />
        )}
        {kind === "pages" && (
          <TextArea
            label="Addresses" rows={6} value={text} onInput={setText}
            hint={`One per line, at most ${LINKS_MAX}; only these are read`}
            placeholder={"https://example.org/prices\nhttps://example.org/opening-hours"}
            error={linksError(errors, links) ?? errors.url}
          />
        )}
        <TextField
          label="Name" value={name} onInput={setName} maxLength={NAME_CHARS_MAX}
          hint="Empty: its address" error={errors.name} autoComplete="off"
        />
        <SiteFields value={site} onInput={setSite} errors={errors} />
      </Form>
    </Dialog>
  );
}

function Address({ kind, url, onUrl, most, onMost, errors }: {
  kind: "site" | "sitemap"; url: string; onUrl(url: string): void;
  most: number | null; onMost(most: number | null): void; errors: Record<string, string>;
}) {
  return kind === "site" ? (
    <>
      <TextField
        label="Address" type="url" required value={url} onInput={onUrl}
        placeholder="https://example.org" error={errors.url}
      />
      <NumberField
        label="Pages to follow" min={1} max={50} value={most} onInput={onMost}
        hint="Links on the page that lead to the same site, 1 to 50"
        error={errors.relative_links_limit}
      />
    </>
  ) : (
    <>
      <TextField
        label="Sitemap address" type="url" required value={url} onInput={onUrl}
        placeholder="https://example.org/sitemap.xml" error={errors.sitemap_url}
      />
      <NumberField
        label="Pages to read" min={1} max={SITEMAP_PAGES_MAX} value={most} onInput={onMost}
        hint={`Pages of the same site, 1 to ${SITEMAP_PAGES_MAX}`}
        error={errors.sitemap_pages_limit}
      />
    </>
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
