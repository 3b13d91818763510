// A button that copies the text beside it.
import { useRef } from "preact/hooks";
import { Button } from "./controls.tsx";
import { useToasts } from "./dialog.tsx";

/** `shown`: where the text stands. */
export function CopyButton({ text, shown }: {
  text: string; shown: { current: HTMLElement | null };
}) {
  const toasts = useToasts();
  const copy = async (): Promise<void> => {
    // Pages of plain http from another machine have no clipboard: people copy what is marked.
    if (!globalThis.isSecureContext) {
      if (shown.current) getSelection()?.selectAllChildren(shown.current);
      toasts.notify("Selected: copy it with Ctrl+C.");
      return;
    }
    await navigator.clipboard.writeText(text);
    toasts.notify("Copied");
  };
  return <Button icon="copy" onClick={() => void copy().catch(toasts.fail)}>Copy</Button>;
}

export function Copyable({ label, text }: { label: string; text: string }) {
  const shown = useRef<HTMLPreElement>(null);
  return (
    <div class="copyable">
      <pre ref={shown} tabIndex={0} role="group" aria-label={label}>{text}</pre>
      <CopyButton text={text} shown={shown} />
    </div>
  );
}
