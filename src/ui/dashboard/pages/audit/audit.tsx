// Who did what in the account, newest first and live; can be filtered and downloaded as a file.
import { useEffect } from "preact/hooks";
import { useAddressed } from "#ui/dashboard/data/address.ts";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi, useSession } from "#ui/dashboard/data/session.tsx";
import { useCalmly } from "#ui/dashboard/data/use-calmly.ts";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";
import { Button, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork } from "#ui/dashboard/kit/dialog.tsx";
import { download, downloadCsv } from "#ui/dashboard/kit/download.ts";
import { when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Page } from "#ui/dashboard/kit/layout.tsx";
import { Table, useTier, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { deedOf, detailsOf, objectOf, THINGS, type Entry } from "./deeds.ts";

const ROWS = 100;
/** An action on many things at once adds as many entries. */
const RELOAD_MS = 1000;
/** `before`: the number of an entry; empty: the newest are shown. */
const NO_FILTER = { action: "", actor: "", before: "" };
const KINDS = [
  { value: "", label: "Everything" },
  ...Object.entries(THINGS).map(([thing, label]) => ({ value: `${thing}.`, label })),
];

export function Audit() {
  const api = useApi();
  const [filter, setFilter] = useAddressed("audit", NO_FILTER);
  const { action, actor, before } = filter;
  const settled = useSettled(actor).trim();
  const query = {
    ...action ? { action } : {}, ...settled ? { actor: settled } : {},
    ...before ? { before: Number(before) } : {},
  };
  const page = useData(`audit/${action}/${settled}/${before}`, () =>
    unwrap(api.GET("/user/audit", { params: { query: { ...query, per_page: ROWS } } })));
  useGrowth(before === "", useCalmly(page.reload, RELOAD_MS));
  const next = page.value?.next_before ?? null;
  return (
    <Page title="Audit" actions={<Exports action={action} actor={settled} />}>
      <div class="filters">
        <SelectField
          label="What" value={action} options={KINDS}
          onInput={(value) => setFilter({ action: value, actor, before: "" })}
        />
        <TextField
          label="Who" value={actor} placeholder="user:5, key:3 or system" autoComplete="off"
          maxLength={100} onInput={(value) => setFilter({ action, actor: value, before: "" })}
        />
      </div>
      <Card class="flush">
        <Table
          label="Audit log" columns={COLUMNS} rowKey={({ number }) => number}
          rows={rowsOf(page.value?.data ?? null, page.error, page.reload)}
          empty={<Empty icon="check" title="No matching entries." />}
        />
      </Card>
      <div class="form-actions">
        {before && <Button onClick={() => setFilter({ ...filter, before: "" })}>Newest</Button>}
        {next !== null && (
          <Button onClick={() => setFilter({ ...filter, before: String(next) })}>Older</Button>
        )}
      </div>
    </Page>
  );
}

const COLUMNS: Column<Entry>[] = [
  {
    title: "When", fits: "6.8rem",
    cell: ({ created_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
  { title: "Who", priority: 2, fits: "9rem", cell: (entry) => <Who {...entry} /> },
  { title: "What", grow: 1.6, isWords: true, cell: (entry) => <What entry={entry} /> },
  { title: "Which", priority: 2, cell: (entry) => <Which {...objectOf(entry)} /> },
  {
    title: "Details", priority: 3,
    cell: (entry) => {
      const details = detailsOf(entry);
      return <span class="two" title={details}>{details}</span>;
    },
  },
  { title: "From", priority: 3, fits: "10rem", cell: ({ ip }) => ip ?? "–" },
];

const Who = ({ actor }: Entry) => (
  <span class="two" title={actor.id}>{actor.name || actor.id}</span>
);

/** On a narrow screen there is no column for the person, who is shown below the action. */
function What({ entry }: { entry: Entry }) {
  const deed = <span title={deedOf(entry)}>{deedOf(entry)}</span>;
  return useTier() > 1 ? deed : <TwoLines main={deed} sub={<Who {...entry} />} />;
}

const Which = ({ name, href }: { name: string; href: string | null }) => (
  <span class="two" title={name}>{href === null ? name : <a href={href}>{name}</a>}</span>
);

/**
 * Calls `reload` when an entry is added while the newest are shown; and once the stream is open,
 * because it does not bring what was added before.
 */
function useGrowth(isNewest: boolean, reload: () => void): void {
  const api = useApi();
  useEffect(() => {
    if (!isNewest) return;
    const abort = new AbortController();
    const onState = (isConnected: boolean): void => {
      if (isConnected) reload();
    };
    const follow = async (): Promise<void> => {
      for await (const { type } of api.watchAudit({ signal: abort.signal, onState })) {
        if (type === "audit_added" || type === "stream_reset") reload();
      }
    };
    // Without the stream the list is as of when it was loaded.
    follow().catch(() => undefined);
    return () => abort.abort();
  }, [api, isNewest, reload]);
}

function Exports({ action, actor }: { action: string; actor: string }) {
  const { apiKey } = useSession();
  const { isBusy, run } = useToastedWork();
  const save = async (format: "csv" | "jsonl"): Promise<void> => {
    const query = new URLSearchParams({
      format, ...action ? { action } : {}, ...actor ? { actor } : {},
    });
    const response = await fetch(`/api/user/audit?${query.toString()}`, {
      headers: apiKey === null ? {} : { Authorization: `Bearer ${apiKey}` },
    });
    if (!response.ok) throw new Error("The log could not be exported.");
    const file = await response.blob();
    if (format === "csv") downloadCsv(file, "audit");
    else download(file, "audit.jsonl");
  };
  return (
    <>
      <Button isBusy={isBusy} onClick={() => run(() => save("csv"))}>Export CSV</Button>
      <Button isBusy={isBusy} onClick={() => run(() => save("jsonl"))}>Export JSON lines</Button>
    </>
  );
}
