// Dialogs and toasts. A dialog is the browser's own: it keeps the focus in and gives it back.
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { messageOf } from "#ui/dashboard/data/session.tsx";
import { Button } from "./controls.tsx";
import { said } from "./said.ts";

/** Where one begins to fill a form in. */
const FIELDS = ".dialog-body :is(input, select, textarea):not(:disabled, [tabindex='-1'])";

export function Dialog({ title, onClose, isWide = false, children }: {
  title: string; onClose(): void; isWide?: boolean; children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  // Before it is painted: keys that follow at once are the dialog's.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // Else the button that closes it has the focus, as suits a question.
    [...dialog?.querySelectorAll<HTMLElement>(FIELDS) ?? []]
      .find((field) => field.checkVisibility())?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element} class={isWide ? "wide" : undefined} aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2>{title}</h2>
        <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}

/** Asks before something that cannot be taken back. */
export function Confirm({ title, action, children, onConfirm, onClose }: {
  title: string; action: string; children: ComponentChildren;
  onConfirm(): Promise<unknown>; onClose(): void;
}) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const confirm = (): void => {
    setBusy(true);
    onConfirm().then(onClose, setError).finally(() => setBusy(false));
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{children}</p>
      {Boolean(error) && <p class="form-error" role="alert">{messageOf(error)}</p>}
      <div class="form-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="danger" isBusy={isBusy} onClick={confirm}>{action}</Button>
      </div>
    </Dialog>
  );
}

interface Toast {
  id: number;
  text: string;
  undo?: (() => unknown) | undefined;
  isError: boolean;
}

interface Toasts {
  /** `undo` takes it back while the words stand there; what it throws is shown. */
  notify(text: string, undo?: () => unknown): void;
  fail(error: unknown): void;
}

const TOAST_MS = 6000;
/** Who wants to take it back has to read it first. */
const UNDO_MS = 12_000;
const ToastContext = createContext<Toasts>({ notify: () => undefined, fail: () => undefined });

export const useToasts = (): Toasts => useContext(ToastContext);

const WRITTEN_IN = "textarea, input:not([type='checkbox'], [type='radio'])";

/** The note is last in the order of Tab. In a field the key takes back what was typed there. */
function undoByKey(): () => void {
  const press = (event: KeyboardEvent): void => {
    const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey
      && event.key.toLowerCase() === "z";
    if (!isUndo || document.activeElement?.matches(WRITTEN_IN)) return;
    const newest = [...document.querySelectorAll<HTMLElement>(".toasts button")].at(-1);
    if (!newest) return;
    event.preventDefault();
    newest.click();
  };
  addEventListener("keydown", press);
  return () => removeEventListener("keydown", press);
}

export function ToastProvider({ children }: { children: ComponentChildren }) {
  const [shown, setShown] = useState<Toast[]>([]);
  const toasts = useMemo<Toasts>(() => {
    let newest = 0;
    const show = (text: string, isError: boolean, undo?: () => unknown): void => {
      const id = (newest += 1);
      setShown((before) => [...before.slice(-2), { id, text, isError, undo }]);
      const ms = undo ? UNDO_MS : TOAST_MS;
      const end = (): void => {
        // Whoever has come to a button is about to press it.
        if (document.querySelector(".toasts button:is(:hover, :focus)")) setTimeout(end, TOAST_MS);
        else setShown((before) => before.filter((toast) => toast.id !== id));
      };
      setTimeout(end, ms);
    };
    return {
      notify: (text, undo) => show(said(text), false, undo),
      fail: (error) => show(messageOf(error), true),
    };
  }, []);
  useEffect(undoByKey, []);
  return (
    <ToastContext.Provider value={toasts}>
      {children}
      <div class="toasts" role="status" aria-live="polite">
        {shown.map(({ id, text, isError, undo }) => (
          <p key={id} class={isError ? "bad" : undefined}>
            {text}
            {undo && (
              <button
                type="button" aria-keyshortcuts="Control+Z Meta+Z" onClick={() => {
                  setShown((before) => before.filter((toast) => toast.id !== id));
                  Promise.resolve().then(undo).catch(toasts.fail);
                }}
              >
                Undo
              </button>
            )}
          </p>
        ))}
      </div>
    </ToastContext.Provider>
  );
}
