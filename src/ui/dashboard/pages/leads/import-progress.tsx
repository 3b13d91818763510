// The progress of an import: first the upload of the file, then its rows, from the account's
// stream. Used by import.tsx.
import { useCallback, useState } from "preact/hooks";
import type { Frame } from "#client/client.ts";
import { useEvents } from "#ui/dashboard/data/live.tsx";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { SentBar } from "#ui/dashboard/kit/drop.tsx";
import { count } from "#ui/dashboard/kit/format.ts";

const EVENTS = ["lead_import_progress"];

interface Progress {
  rows: number;
  total: number;
}

/** Null: no progress of this import is known yet. */
export function useProgress(importId: string | undefined): Progress | null {
  const [known, setKnown] = useState<Progress & { importId: string } | null>(null);
  const hear = useCallback((frame: Frame) => {
    if (importId === undefined || frame.import_id !== importId) return;
    setKnown({ importId, rows: Number(frame.rows), total: Number(frame.rows_total) });
  }, [importId]);
  useEvents(EVENTS, hear);
  return known?.importId === importId ? known : null;
}

/** `onClose`: null while the import can still be cancelled. */
export function Sending({ share, progress, onClose }: {
  share: number; progress: Progress | null; onClose: (() => void) | null;
}) {
  if (!onClose) {
    return (
      <>
        <SentBar label="Sent" share={share} />
        <p class="soft" role="status">Sending…</p>
      </>
    );
  }
  return (
    <>
      <SentBar label="Import" share={progress?.total ? progress.rows / progress.total : 0} />
      <p role="status">
        {progress
          ? `${count(progress.rows)} of ${count(progress.total)} rows are done.`
          : "The rows are being read…"}
      </p>
      <p class="soft">
        You can close this: the import goes on to its last row. Which rows it refuses is listed only
        here.
      </p>
      <div class="form-actions"><Button onClick={onClose}>Close</Button></div>
    </>
  );
}
