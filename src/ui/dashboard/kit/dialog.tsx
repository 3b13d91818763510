// Dialogs and toasts. A dialog is the browser's own: it keeps the focus in and gives it back.
import { createContext, type ComponentChildren } from "preact";
import {
  useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState,
} from "preact/hooks";
import { messageOf } from "#ui/dashboard/data/session.tsx";
import { Button, Form, useWork } from "./controls.tsx";
import { said } from "./said.ts";

/** The first of these gets the focus when a dialog opens. */
const FIELDS = ".dialog-body :is(input, select, textarea):not(:disabled, [tabindex='-1'])";

/** `describedBy`: the id of the text that is read out with the title when it opens. */
export function Dialog({ title, onClose, isWide = false, describedBy, children }: {
  title: string; onClose(): void; isWide?: boolean; describedBy?: string;
  children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const place = useNotePlace();
  // Before paint: keys that are pressed at once go to the dialog.
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
      ref={element} class={isWide ? "wide" : undefined}
      aria-label={title} aria-describedby={describedBy}
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
      <Notes at={place} />
    </dialog>
  );
}

/** Asks first. What deletes something or cannot be undone is red; `main` is for all else. */
export function Confirm({ title, action, kind = "danger", children, onConfirm, onClose }: {
  title: string; action: string; kind?: "main" | "danger"; children: ComponentChildren;
  onConfirm(): Promise<unknown>; onClose(): void;
}) {
  const [error, setError] = useState<unknown>(null);
  const text = useId();
  return (
    <Dialog title={title} onClose={onClose} describedBy={text}>
      <Form
        kind={kind} submit={action} error={error} onError={setError} onCancel={onClose}
        onSubmit={() => onConfirm().then(onClose)}
      >
        <p id={text}>{children}</p>
      </Form>
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
  /** `undo` takes it back while the toast is shown; what it throws is shown. */
  notify(text: string, undo?: () => unknown): void;
  fail(error: unknown): void;
}

/** Where toasts may be shown: a dialog; null: the page. */
type Place = symbol | null;

interface NotesShown {
  shown: Toast[];
  /** Where they are: below an open dialog they would be neither read out nor clickable. */
  at: Place;
  take(id: number): void;
}

const TOAST_MS = 6000;
/** People have to read it before they decide to undo. */
const UNDO_MS = 12_000;
const ToastContext = createContext<Toasts & { opened(place: symbol): () => void }>({
  notify: () => undefined, fail: () => undefined, opened: () => () => undefined,
});
const NotesContext = createContext<NotesShown>({ shown: [], at: null, take: () => undefined });

/** While the dialog that calls this is open, toasts are shown in the dialog opened last. */
function useNotePlace(): symbol {
  const { opened } = useContext(ToastContext);
  const [place] = useState(() => Symbol("dialog"));
  useLayoutEffect(() => opened(place), []);
  return place;
}

function Notes({ at: place }: { at: Place }) {
  const { shown, at, take } = useContext(NotesContext);
  const toasts = useToasts();
  // A status is read out as a whole by default, with the older toasts: hence `aria-atomic`.
  return (
    <div class="toasts" role="status" aria-live="polite" aria-atomic="false">
      {(place === at ? shown : []).map(({ id, text, isError, undo }) => (
        <p key={id} class={isError ? "bad" : undefined}>
          {text}
          {undo && (
            <button
              type="button" aria-keyshortcuts="Control+Z Meta+Z" onClick={() => {
                take(id);
                Promise.resolve().then(undo).catch(toasts.fail);
              }}
            >
              Undo
            </button>
          )}
        </p>
      ))}
    </div>
  );
}

export const useToasts = (): Toasts => useContext(ToastContext);

/** Runs one piece of work at a time, whose failure is shown as a toast. */
export const useToastedWork = (): ReturnType<typeof useWork> => useWork(useToasts().fail);

const WRITTEN_IN = "textarea, input:not([type='checkbox'], [type='radio'])";

/** The toast comes last in the tab order. In a field the key undoes typing instead. */
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
  const [places, setPlaces] = useState<symbol[]>([]);
  const take = useCallback((id: number): void =>
    setShown((before) => before.filter((toast) => toast.id !== id)), []);
  const toasts = useMemo(() => {
    let newest = 0;
    const show = (text: string, isError: boolean, undo?: () => unknown): void => {
      const id = (newest += 1);
      setShown((before) => [...before.slice(-2), { id, text, isError, undo }]);
      const ms = undo ? UNDO_MS : TOAST_MS;
      const end = (): void => {
        // Somebody who points at a button, or has focused it, is about to press it.
        if (document.querySelector(".toasts button:is(:hover, :focus)")) setTimeout(end, TOAST_MS);
        else take(id);
      };
      setTimeout(end, ms);
    };
    return {
      notify: (text: string, undo?: () => unknown) => show(said(text), false, undo),
      fail: (error: unknown) => show(messageOf(error), true),
      opened: (place: symbol) => {
        setPlaces((before) => [...before, place]);
        return () => setPlaces((before) => before.filter((one) => one !== place));
      },
    };
  }, []);
  useEffect(undoByKey, []);
  return (
    <ToastContext.Provider value={toasts}>
      <NotesContext.Provider value={{ shown, at: places.at(-1) ?? null, take }}>
        {children}
        <Notes at={null} />
      </NotesContext.Provider>
    </ToastContext.Provider>
  );
}
