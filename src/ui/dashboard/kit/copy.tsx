// Text to take elsewhere: shown as it is, with a button that copies it.
import { useRef } from "preact/hooks";
import { Button } from "./controls.tsx";
import { useToasts } from "./dialog.tsx";

export function Copyable({ label, text }: { label: string; text: string }) {
  const toasts = useToasts();
  const shown = useRef<HTMLPreElement>(null);
  const copy = async (): Promise<void> => {
    // Pages of plain http from another machine have no clipboard: people copy what is marked.
    if (!globalThis.isSecureContext) {
      if (shown.current) getSelection()?.selectAllChildren(shown.current);
      toasts.notify("Marked: copy it with Ctrl+C.");
      return;
    }
    await navigator.clipboard.writeText(text);
    toasts.notify("Copied");
  };
  return (
    <div class="copyable">
      <pre ref={shown} tabIndex={0} role="group" aria-label={label}>{text}</pre>
      <Button icon="copy" onClick={() => void copy().catch(toasts.fail)}>Copy</Button>
    </div>
  );
}
