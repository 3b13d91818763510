// Importing leads from a CSV or XLSX file, and what became of its rows.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import type { Campaign } from "#ui/dashboard/data/lists.ts";
import { pendingOf, type Pending } from "#ui/dashboard/data/new-key.ts";
import { fieldErrors, messageOf, useSession } from "#ui/dashboard/data/session.tsx";
import { FILE_BYTES_MAX, upload } from "#ui/dashboard/data/upload.ts";
import { csvLine } from "#core/csv.ts";
import { downloadCsv } from "#ui/dashboard/kit/download.ts";
import { Button, SelectField } from "#ui/dashboard/kit/controls.tsx";
import { Dialog, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { DropZone } from "#ui/dashboard/kit/drop.tsx";
import { bytes, count } from "#ui/dashboard/kit/format.ts";
import { Figure, Notice } from "#ui/dashboard/kit/layout.tsx";
import { said } from "#ui/dashboard/kit/said.ts";
import { t } from "#ui/dashboard/kit/texts.ts";
import { CampaignField, WithCampaigns } from "./choose-campaign.tsx";
import {
  guessedColumns, ImportColumns, mappingOf, PREVIEW_BYTES, type Columns, type PreviewAnswer,
} from "./import-columns.tsx";
import { Sending, useProgress } from "./import-progress.tsx";
import "./leads.css";

type Answer = paths["/user/leads/import"]["post"]["responses"][200]["content"]["application/json"];
type Report = Answer["data"];

interface Props {
  /** The campaign that is chosen first; empty: any. */
  campaignId: string;
  onDone(): void;
  onClose(): void;
}

export function ImportDialog(props: Props) {
  return (
    <Dialog title="Import leads" onClose={props.onClose}>
      <WithCampaigns>{(campaigns) => <Import {...props} campaigns={campaigns} />}</WithCampaigns>
    </Dialog>
  );
}

const ACCEPTED = ".csv,text/csv,.xlsx,"
  + "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const DUPLICATES = [
  { value: "skip", label: "Skip them" },
  { value: "update", label: "Update their variables" },
  { value: "add", label: "Add them again" },
];

/** The first rows of a workbook cannot be read without all of it. */
const beginningOf = (file: File): Blob =>
  /\.xlsx$/i.test(file.name) ? file : file.slice(0, PREVIEW_BYTES);

const problemOf = ({ size }: File): string | null =>
  size > FILE_BYTES_MAX ? "The file is larger than 20 MB." : null;

interface Chosen {
  preview: PreviewAnswer["data"];
  columns: Columns;
}

/** The result of previewing a file. */
interface Read {
  file: File;
  chosen: Chosen | null;
  failure: unknown;
}

/** Previews the chosen file; `chosen` is null while it is read, or if it could not be read. */
function usePreview(file: File | null, apiKey: string | null) {
  const [read, setRead] = useState<Read | null>(null);
  useEffect(() => {
    if (!file) return;
    const { signal, abort } = controller();
    const tell = (chosen: Chosen | null, failure: unknown): void => {
      if (!signal.aborted) setRead({ file, chosen, failure });
    };
    upload<PreviewAnswer>({
      path: "/user/leads/import/preview", apiKey, fields: {}, signal, onProgress: () => undefined,
      file: new File([beginningOf(file)], file.name),
    }).then(
      ({ data }) => tell({ preview: data, columns: guessedColumns(data) }, null),
      (failure: unknown) => tell(null, failure),
    );
    return abort;
  }, [file, apiKey]);
  // True from the first render on, so that nothing is sent before the columns are known.
  const isReading = file !== null && read?.file !== file;
  const { chosen = null, failure = null } = isReading || !file ? {} : read ?? {};
  const shown = file && chosen
    ? <ImportColumns {...chosen} onInput={(columns) => setRead({
        file, chosen: { ...chosen, columns }, failure: null,
      })} />
    : isReading && <p class="soft" role="status">The file is being read…</p>;
  return { chosen, isReading, failure, shown };
}

function controller() {
  const made = new AbortController();
  return { signal: made.signal, abort: () => made.abort() };
}

class NoNumber extends Error {}
const NO_NUMBER = "Choose the column that has the phone numbers.";

function textOf(wrong: unknown): string | null {
  if (wrong instanceof NoNumber) return NO_NUMBER;
  return wrong ? fieldErrors(wrong).file ?? messageOf(wrong) : null;
}

const mapped = (mapping: object | null) =>
  mapping ? { mapping: JSON.stringify(mapping) } : {};

interface Sent {
  /** From 0 to 1, of the file. */
  share: number;
  /** The id under which the stream reports the progress. */
  importId: string;
  /** During the upload nothing is stored yet, so that it can be cancelled. */
  abort(): void;
}

/**
 * One import at a time; people who close the dialog while rows are stored get a toast at its end.
 */
function useImport(apiKey: string | null, onDone: (report: Report) => void) {
  const toasts = useToasts();
  const [sent, setSent] = useState<Sent | null>(null);
  const [error, setError] = useState<unknown>(null);
  const isOpen = useRef(true);
  const current = useRef<Sent | null>(null);
  current.current = sent;
  const tried = useRef<Pending | null>(null);
  useEffect(() => () => {
    isOpen.current = false;
    if (current.current && current.current.share < 1) current.current.abort();
  }, []);
  const send = async (file: File, fields: Record<string, string>): Promise<void> => {
    const { signal, abort } = controller();
    const { name, size, lastModified } = file;
    tried.current = pendingOf(
      tried.current, JSON.stringify([name, size, lastModified, fields]));
    const importId = tried.current.key;
    setError(null);
    setSent({ share: 0, importId, abort });
    try {
      const { data } = await upload<Answer>({
        path: "/user/leads/import", apiKey, file, fields: { ...fields, import_id: importId }, signal,
        onProgress: (share) => setSent({ share, importId, abort }),
      });
      if (!isOpen.current) toasts.notify(inWords(data));
      onDone(data);
    } catch (failure) {
      if (!signal.aborted) setError(failure);
      if (!signal.aborted && !isOpen.current) toasts.fail(failure);
    }
    setSent(null);
  };
  return { sent, progress: useProgress(sent?.importId), error, setError, send };
}

const inWords = ({ imported, duplicates, failed }: Report): string =>
  t(`Import: ${count(imported)} imported, ${count(duplicates)} already there, ${count(failed)} refused.`);

function Import({ campaigns, campaignId, onDone, onClose }: Props & { campaigns: Campaign[] }) {
  const { apiKey } = useSession();
  const [campaign, setCampaign] = useState(campaignId || String(campaigns.at(-1)?.id ?? ""));
  const [duplicates, setDuplicates] = useState("skip");
  const [file, setFile] = useState<File | null>(null);
  const [report, setReport] = useState<Report | null>(null);
  const isSmall = file !== null && problemOf(file) === null;
  const { chosen, isReading, failure, shown } = usePreview(isSmall ? file : null, apiKey);
  const { sent, progress, error, setError, send } = useImport(apiKey, (data) => {
    setReport(data);
    setFile(null);
    onDone();
  });
  if (report) return <Outcome report={report} onAgain={() => setReport(null)} onClose={onClose} />;
  if (sent && sent.share >= 1) return <Sending share={1} progress={progress} onClose={onClose} />;
  const problem = file && problemOf(file);
  const begin = (): void => {
    const mapping = chosen && mappingOf(chosen.columns);
    if (chosen && !mapping) return setError(new NoNumber());
    if (file) void send(file, { campaign_id: campaign, duplicates, ...mapped(mapping) });
  };
  const errors = fieldErrors(error);
  const text = problem ?? textOf(error ?? failure);
  return (
    <>
      <CampaignField
        campaigns={campaigns} value={campaign} onInput={setCampaign} error={errors.campaign_id}
      />
      <DropZone
        label={file ? `${file.name}, ${bytes(file.size)}` : "Drop a CSV or XLSX file here, or choose it"}
        accept={ACCEPTED} disabled={sent !== null}
        onFiles={([first]) => {
          setFile(first ?? null);
          setError(null);
        }}
      >
        It needs a column of phone numbers with country codes; other columns can be variables. At
        most 20 MB.
      </DropZone>
      {shown}
      <SelectField
        label="Numbers already in the campaign" value={duplicates} onInput={setDuplicates}
        options={DUPLICATES}
      />
      {text && <p class="form-error" role="alert">{text}</p>}
      {sent && <Sending share={sent.share} progress={null} onClose={null} />}
      <div class="form-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button
          kind="main" disabled={!file || problem !== null || isReading} isBusy={sent !== null}
          onClick={begin}
        >
          Import
        </Button>
      </div>
    </>
  );
}

/** Saves the refused rows with their reasons, so that people can correct them in a spreadsheet. */
function save(errors: Report["errors"]): void {
  const lines = [
    ["row", "phone_number", "reason"],
    ...errors.map(({ row, phone_number: number, message }) => [row, number, said(message)]),
  ];
  downloadCsv(lines.map(csvLine).join("\r\n"), "refused-rows");
}

function Outcome({ report, onAgain, onClose }: {
  report: Report; onAgain(): void; onClose(): void;
}) {
  const { imported, duplicates, updated, failed, errors, errors_truncated: isCut } = report;
  const place = useRef<HTMLDivElement>(null);
  // The focused element is gone: the focus moves here, so that screen readers read the figures out.
  useLayoutEffect(() => place.current?.focus(), []);
  return (
    <div class="leads-report">
      <div ref={place} tabIndex={-1} role="group" aria-label={inWords(report)}>
        <dl class="figures-row">
          <Figure label="Imported" value={count(imported)} />
          <Figure label="Already there" value={count(duplicates - updated)} />
          {updated > 0 && <Figure label="Updated" value={count(updated)} />}
          <Figure label="Refused" value={count(failed)} />
        </dl>
      </div>
      {failed === 0 && <Notice tone="good">Every row was imported.</Notice>}
      {errors.length > 0 && (
        <div class="scrolls" tabIndex={0} role="region" aria-label="Refused rows">
          <table class="figures">
            <thead>
              <tr><th scope="col">Row</th><th scope="col">Number</th><th scope="col">Why</th></tr>
            </thead>
            <tbody>
              {errors.map(({ row, phone_number: number, message }) => (
                <tr key={row}><td>{row}</td><td>{number}</td><td>{said(message)}</td></tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {isCut && <p class="soft">Only the first {errors.length} refused rows are listed.</p>}
      <div class="form-actions">
        {errors.length > 0 && (
          <Button onClick={() => save(errors)}>Refused rows as CSV</Button>
        )}
        <Button onClick={onAgain}>Import another</Button>
        <Button kind="main" onClick={onClose}>Done</Button>
      </div>
    </div>
  );
}
