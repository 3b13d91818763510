// How a website is read: how often, and whether its robots.txt counts. Asked when it is added
// (website.tsx), and changed later (documents.tsx).
import { useState } from "preact/hooks";
import { useEdited } from "#ui/dashboard/data/meanwhile.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Form, SelectField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { when } from "#ui/dashboard/kit/format.ts";
import type { Document } from "./types.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

export const NEVER = "never";
const TIMETABLES = [
  { value: NEVER, label: "By hand only" },
  { value: "6", label: "Every six hours" },
  { value: "24", label: "Every day" },
  { value: "168", label: "Every week" },
  { value: "720", label: "Every 30 days" },
];

export const rereadHours = (value: string): number | null =>
  (value === NEVER ? null : Number(value));

/** The list's label, or hours where a program has set another interval. */
function timetableOf(hours: number | null): { value: string; label: string } {
  const value = hours === null ? NEVER : String(hours);
  return TIMETABLES.find((one) => one.value === value) ?? { value, label: `Every ${value} hours` };
}

interface SiteValue {
  reread: string;
  isOwn: boolean;
}

export function SiteFields({ value, onInput, errors }: {
  value: SiteValue; onInput(value: SiteValue): void; errors: Record<string, string>;
}) {
  const chosen = timetableOf(rereadHours(value.reread));
  const isListed = TIMETABLES.some((one) => one.value === chosen.value);
  return (
    <>
      <SelectField
        label="Read again" value={value.reread} options={isListed ? TIMETABLES : [chosen, ...TIMETABLES]}
        onInput={(reread) => onInput({ ...value, reread })}
        hint="Only pages that have changed are read again" error={errors.read_again_every_hours}
      />
      <Toggle
        label="This site is mine: read it whatever its robots.txt says" value={value.isOwn}
        onInput={(isOwn) => onInput({ ...value, isOwn })}
        hint="The audit log records that you said so" error={errors.ignore_robots}
      />
    </>
  );
}

const valueOf = (document: Pick<Document, "read_again_every_hours" | "ignore_robots">): SiteValue => ({
  reread: timetableOf(document.read_again_every_hours).value, isOwn: document.ignore_robots,
});
const onWire = ({ reread, isOwn }: SiteValue) =>
  ({ read_again_every_hours: rereadHours(reread), ignore_robots: isOwn });

export function SiteSettings({ knowledgebaseId: id, document, onDone, onClose }: {
  knowledgebaseId: number; document: Document; onDone(): void; onClose(): void;
}) {
  const api = useApi();
  const edited = useEdited(() => valueOf(document), onWire);
  const [error, setError] = useState<unknown>(null);
  const save = async (): Promise<void> => {
    const path = "/user/knowledgebases/{id}/documents/{document_id}";
    const params = { path: { id, document_id: document.id } };
    const { data } = await unwrap(api.GET(path, { params }));
    await unwrap(api.PATCH(path, { params, body: onWire(edited.onto(valueOf(data))) }));
    onDone();
    onClose();
  };
  return (
    <Dialog title={`How ${document.name} is read`} onClose={onClose}>
      <Form submit="Save" error={error} onError={setError} onCancel={onClose} onSubmit={save}>
        <SiteFields value={edited.fields} onInput={edited.set} errors={fieldErrors(error)} />
      </Form>
    </Dialog>
  );
}

/** Rows about a website for the document's facts. */
export function siteFacts(document: Document): [string, string][] {
  if (document.type !== "website") return [];
  const { read_again_every_hours: hours, next_read_at: next, read_at: read } = document;
  return [
    ...(document.sitemap_url === null ? [] : [["Sitemap", document.sitemap_url] as [string, string]]),
    ["Last read", read === null ? "–" : when(read)],
    ["Read again", next === null
      ? timetableOf(hours).label
      : t(`${timetableOf(hours).label}, next ${when(next)}`)],
    ["robots.txt", document.ignore_robots ? "Not obeyed: the site is yours" : "Obeyed"],
  ];
}
