// Files for a reply: picked, pasted or dropped, uploaded at once, and referred to by the message.
import { useEffect, useRef, useState } from "preact/hooks";
import { ATTACHABLE, faultOf, FILES_MAX, pastedFiles, takeDrops } from "#ui/attachments.ts";
import { useMay } from "#ui/dashboard/data/rights.tsx";
import { useSession } from "#ui/dashboard/data/session.tsx";
import { upload } from "#ui/dashboard/data/upload.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { useToasts } from "#ui/dashboard/kit/dialog.tsx";
import type { Attached } from "./unsent.ts";

const PROBLEMS = {
  kind: "Only pictures (PNG, JPEG, GIF, WebP) and PDF files can be attached.",
  large: "A file may be at most 10 MB.",
};

interface Attaching {
  isBusy: boolean;
  attach(files: Iterable<File>): void;
  /** Takes pasted files, and leaves text to the field. */
  paste(event: ClipboardEvent): void;
}

/** `read` returns the files attached by now: people keep writing during an upload. */
export function useAttaching(
  uuid: string, read: () => readonly Attached[], add: (file: Attached) => void,
): Attaching {
  const { apiKey } = useSession();
  const { fail } = useToasts();
  const [uploads, setUploads] = useState(0);
  const last = useRef(Promise.resolve());
  const uploadAll = async (files: readonly File[]): Promise<void> => {
    for (const file of files) {
      if (read().length >= FILES_MAX) throw new Error("A message can have at most 4 files.");
      const fault = faultOf(file);
      if (fault !== null) throw new Error(PROBLEMS[fault]);
      const { attachment } = await upload<{ attachment: Attached }>({
        path: `/user/conversations/${uuid}/attachments`, apiKey, fields: {}, file,
        onProgress: () => undefined,
      });
      add(attachment);
    }
  };
  const attach = (files: Iterable<File>): void => {
    const chosen = [...files];
    setUploads((count) => count + 1);
    // One after the other, each counted among the files before the next is.
    last.current = last.current.then(() => uploadAll(chosen)).catch(fail)
      .finally(() => setUploads((count) => count - 1));
  };
  return {
    isBusy: uploads > 0, attach,
    paste: (event) => {
      const files = pastedFiles(event.clipboardData);
      if (files.length === 0) return;
      event.preventDefault();
      attach(files);
    },
  };
}

export function AttachButton({ attaching: { isBusy, attach } }: { attaching: Attaching }) {
  const field = useRef<HTMLInputElement>(null);
  const mayNot = useMay()("answer") !== null;
  useEffect(() => {
    if (mayNot) return;
    const gone = new AbortController();
    takeDrops(document, attach, gone.signal);
    return () => gone.abort();
  }, [mayNot, attach]);
  return (
    <>
      <Button
        kind="quiet" needs="answer" icon="clip" label="Attach files" isBusy={isBusy}
        onClick={() => field.current?.click()}
      />
      <input
        ref={field} type="file" accept={ATTACHABLE} multiple hidden
        onChange={(event) => {
          attach([...event.currentTarget.files ?? []]);
          // So that the same file can be picked again.
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

export function AttachedFiles({ files, onRemove }: {
  files: readonly Attached[]; onRemove(file: Attached): void;
}) {
  if (files.length === 0) return null;
  return (
    <ul class="inbox-files" aria-label="Attached files">
      {files.map((file) => (
        <li key={file.id}>
          {file.name}
          <Button kind="quiet" icon="close" label={`Remove ${file.name}`} onClick={() => onRemove(file)} />
        </li>
      ))}
    </ul>
  );
}
