// Importing leads from a CSV file, and what became of its rows.
import { useRef, useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import type { Campaign } from "#ui/dashboard/data/lists.ts";
import { fieldErrors, messageOf, useSession } from "#ui/dashboard/data/session.tsx";
import { FILE_BYTES_MAX, upload } from "#ui/dashboard/data/upload.ts";
import { csvLine } from "#core/csv.ts";
import { download } from "#ui/dashboard/kit/download.ts";
import { Button, SelectField } from "#ui/dashboard/kit/controls.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { DropZone, SentBar } from "#ui/dashboard/kit/drop.tsx";
import { bytes, count } from "#ui/dashboard/kit/format.ts";
import { Figure, Notice } from "#ui/dashboard/kit/layout.tsx";
import { CampaignField, WithCampaigns } from "./choose-campaign.tsx";
import "./leads.css";

type Answer = paths["/user/leads/import"]["post"]["responses"][200]["content"]["application/json"];
type Report = Answer["data"];

interface Props {
  /** The one to begin with; empty: any. */
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

const DUPLICATES = [
  { value: "skip", label: "Leave them out" },
  { value: "update", label: "Update their variables" },
  { value: "add", label: "Add them once more" },
];

const problemOf = ({ size }: File): string | null =>
  size > FILE_BYTES_MAX ? "The file is larger than 20 MB." : null;

function Import({ campaigns, campaignId, onDone, onClose }: Props & { campaigns: Campaign[] }) {
  const { apiKey } = useSession();
  const [campaign, setCampaign] = useState(campaignId || String(campaigns.at(-1)?.id ?? ""));
  const [duplicates, setDuplicates] = useState("skip");
  const [file, setFile] = useState<File | null>(null);
  const [share, setShare] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [report, setReport] = useState<Report | null>(null);
  const key = useRef(0);
  if (report) return <Outcome report={report} onAgain={() => setReport(null)} onClose={onClose} />;
  const problem = file && problemOf(file);
  const send = async (chosen: File): Promise<void> => {
    const run = (key.current += 1);
    setError(null);
    setShare(0);
    try {
      const { data } = await upload<Answer>({
        path: "/user/leads/import", apiKey, file: chosen,
        fields: { campaign_id: campaign, duplicates },
        onProgress: (sent) => run === key.current && setShare(sent),
      });
      setReport(data);
      setFile(null);
      onDone();
    } catch (failure) {
      setError(failure);
    }
    setShare(null);
  };
  const errors = fieldErrors(error);
  const text = problem ?? (error ? errors.file ?? messageOf(error) : null);
  return (
    <>
      <CampaignField
        campaigns={campaigns} value={campaign} onInput={setCampaign} error={errors.campaign_id}
      />
      <DropZone
        label={file ? `${file.name}, ${bytes(file.size)}` : "Drop a CSV file here, or choose it"}
        accept=".csv,text/csv" disabled={share !== null}
        onFiles={([first]) => {
          setFile(first ?? null);
          setError(null);
        }}
      >
        A column phone_number, with country codes; every other column is a variable. At most 20 MB.
      </DropZone>
      <SelectField
        label="Numbers the campaign has already" value={duplicates} onInput={setDuplicates}
        options={DUPLICATES}
      />
      {text && <p class="form-error" role="alert">{text}</p>}
      {share !== null && <SentBar label="Import" share={share} />}
      {share !== null && (
        <p class="soft" role="status">
          {share < 1 ? "Sending…" : "Sent. The rows are being read…"}
        </p>
      )}
      <div class="form-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button
          kind="main" disabled={!file || problem !== null} isBusy={share !== null}
          onClick={() => void (file && send(file))}
        >
          Import
        </Button>
      </div>
    </>
  );
}

/** To be put right in a spreadsheet, each with what is wrong with it. */
function save(errors: Report["errors"]): void {
  const lines = [
    ["row", "phone_number", "reason"],
    ...errors.map(({ row, phone_number: number, message }) => [row, number, message]),
  ];
  download(new Blob([lines.map(csvLine).join("\r\n")], { type: "text/csv" }), "refused-rows.csv");
}

function Outcome({ report, onAgain, onClose }: {
  report: Report; onAgain(): void; onClose(): void;
}) {
  const { imported, duplicates, updated, failed, errors, errors_truncated: isCut } = report;
  return (
    <div class="leads-report">
      <div role="group" aria-label="What became of the rows">
        <dl class="figures-row">
          <Figure label="Imported" value={count(imported)} />
          <Figure label="There already" value={count(duplicates - updated)} />
          {updated > 0 && <Figure label="Updated" value={count(updated)} />}
          <Figure label="Refused" value={count(failed)} />
        </dl>
      </div>
      {failed === 0 && <Notice tone="good">Every row was taken.</Notice>}
      {errors.length > 0 && (
        <div class="scrolls" tabIndex={0} role="region" aria-label="Refused rows">
          <table class="figures">
            <thead>
              <tr><th scope="col">Row</th><th scope="col">Number</th><th scope="col">Why</th></tr>
            </thead>
            <tbody>
              {errors.map(({ row, phone_number: number, message }) => (
                <tr key={row}><td>{row}</td><td>{number}</td><td>{message}</td></tr>
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
