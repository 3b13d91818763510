// What people have changed and not saved yet: the bar that says so, and the question before a page
// is left with it.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useMay } from "#ui/dashboard/data/rights.tsx";
import { Button } from "./controls.tsx";
import { Dialog } from "./dialog.tsx";
import { guardLeaving } from "./leaving.ts";

/** While dirty, asks before the hash leaves `home`; addresses below `home` are the same page. */
export function LeaveGuard({ isDirty, home }: { isDirty: boolean; home: string }) {
  const [wanted, setWanted] = useState<string | null>(null);
  const mayLeave = useRef(false);
  // Not only after the next frame: people who are quick must be asked, too.
  useLayoutEffect(() => {
    if (!isDirty) return;
    const onUnload = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", onUnload);
    guardLeaving((hash) => {
      if (mayLeave.current || hash === home || hash.startsWith(`${home}/`)) return false;
      setWanted(hash);
      return true;
    });
    return () => {
      guardLeaving(null);
      removeEventListener("beforeunload", onUnload);
    };
  }, [isDirty, home]);
  // The changes have been saved in the meantime: nothing is lost any more, so the page is left.
  useLayoutEffect(() => {
    if (isDirty || wanted === null) return;
    setWanted(null);
    location.hash = wanted;
  }, [isDirty, wanted]);
  if (wanted === null) return null;
  return (
    <Dialog title="Leave without saving?" onClose={() => setWanted(null)}>
      <p>Your changes are not saved and will be lost.</p>
      <div class="form-actions">
        <Button onClick={() => setWanted(null)}>Stay</Button>
        <Button
          kind="danger"
          onClick={() => {
            mayLeave.current = true;
            location.hash = wanted;
          }}
        >
          Leave
        </Button>
      </div>
    </Dialog>
  );
}

/** Stands at the bottom of the screen while something is unsaved; Ctrl+S saves too. */
export function UnsavedBar({ isBusy, needs, note, onSave, onDiscard }: {
  isBusy: boolean;
  /** The right to save. */
  needs: string;
  /** Why saving failed. */
  note?: ComponentChildren;
  onSave(): void;
  onDiscard(): void;
}) {
  const mayNot = useMay()(needs) !== null;
  const save = useRef(onSave);
  save.current = mayNot ? () => undefined : onSave;
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      save.current();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <div class="unsaved-bar" role="region" aria-label="Unsaved changes">
      <div>
        <strong>Unsaved changes</strong>
        {note && <p class="form-error" role="alert">{note}</p>}
      </div>
      <div class="actions">
        <Button disabled={isBusy} onClick={onDiscard}>Discard</Button>
        <Button kind="main" needs={needs} isBusy={isBusy} onClick={onSave}>Save</Button>
      </div>
    </div>
  );
}
