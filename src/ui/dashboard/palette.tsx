// The command palette (Ctrl+K, ⌘K): finds pages, assistants, numbers and people by name; and the
// help (`?`) with the keyboard shortcuts. It loads what it searches when it is opened.
import { useEffect, useMemo, useState } from "preact/hooks";
import { isComposing } from "#ui/composing.ts";
import { useAssistants, useOwnNumbers } from "./data/lists.ts";
import { unwrap, useApi } from "./data/session.tsx";
import { useData } from "./data/use-data.ts";
import { useSettled } from "./data/use-settled.ts";
import { Dialog } from "./kit/dialog.tsx";
import { titleOf } from "./pages/conversations/conversations.tsx";

interface Found {
  kind: string;
  label: string;
  href: string;
}

interface PaletteProps {
  pages: readonly { path: string; label: string }[];
  onClose(): void;
}

const SHOWN_MAX = 12;

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");

/** Opens the palette or the help unless a dialog is open; Escape closes them like any dialog. */
export function Shortcuts({ pages }: Pick<PaletteProps, "pages">) {
  const [open, setOpen] = useState<"palette" | "help" | null>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const isPalette = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
      const isHelp = event.key === "?" && !isTyping(event.target);
      if (!isPalette && !isHelp) return;
      event.preventDefault();
      if (document.querySelector("dialog[open]") === null) setOpen(isPalette ? "palette" : "help");
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const close = (): void => setOpen(null);
  return (
    <>
      <button type="button" class="button quiet palette-button" onClick={() => setOpen("palette")}>
        Search <kbd>Ctrl K</kbd>
      </button>
      {open === "palette" && <Palette pages={pages} onClose={close} />}
      {open === "help" && <Help onClose={close} />}
    </>
  );
}

const KEYS: [keys: string, what: string][] = [
  ["Ctrl K or ⌘ K", "Go to a page, an assistant, a number or a person"],
  ["?", "Show these shortcuts"],
  ["Ctrl Z or ⌘ Z", "Press “Undo” on the newest notification"],
  ["Tab, then Enter, on a page’s start", "Skip to its content"],
  ["j and k", "In the inbox: the next conversation and the one before"],
  ["r", "In the inbox: reply"],
  ["/", "In the inbox: search"],
  ["Escape", "Close the open dialog or menu"],
];

function Help({ onClose }: { onClose(): void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="palette-keys">
        {KEYS.map(([keys, what]) => (
          <div key={keys}><dt><kbd>{keys}</kbd></dt><dd>{what}</dd></div>
        ))}
      </dl>
    </Dialog>
  );
}

/** People and conversations that the server finds; none before something is typed. */
function usePeople(text: string): Found[] {
  const api = useApi();
  const search = useSettled(text.trim());
  const { value } = useData(`palette ${search}`, async () => {
    if (search.length < 2) return [];
    const { data } = await unwrap(api.GET("/user/conversations", {
      params: { query: { search, per_page: 5 } },
    }));
    return data.map((row) => ({
      kind: "Conversation", href: `#/conversations/${row.id}`,
      label: `${titleOf(row)}: ${row.last_message?.content.slice(0, 60) ?? ""}`,
    }));
  });
  return value ?? [];
}

function Palette({ pages, onClose }: PaletteProps) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const assistants = useAssistants().value;
  const numbers = useOwnNumbers().value;
  const people = usePeople(text);
  const known = useMemo<Found[]>(() => [
    ...pages.map(({ path, label }) => ({ kind: "Page", label, href: `#${path}` })),
    ...(assistants ?? []).map(({ id, name }) => (
      { kind: "Assistant", label: name, href: `#/assistants/${id}` })),
    ...(numbers ?? []).map(({ phone_number: number }) => (
      { kind: "Number", label: number, href: "#/numbers" })),
  ], [pages, assistants, numbers]);
  const words = text.trim().toLowerCase();
  const found = [...known.filter(({ label }) => label.toLowerCase().includes(words)), ...people]
    .slice(0, SHOWN_MAX);
  const current = Math.min(at, found.length - 1);
  const open = (one: Found | undefined): void => {
    if (!one) return;
    onClose();
    location.hash = one.href;
  };
  const press = (event: KeyboardEvent): void => {
    if (isComposing(event)) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && found.length > 0) {
      event.preventDefault();
      setAt((current + step + found.length) % found.length);
    }
    if (event.key === "Enter") {
      event.preventDefault();
      open(found[current]);
    }
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        class="palette-text" type="text" role="combobox" aria-label="Page, assistant, number or person"
        aria-expanded="true" aria-controls="palette-found" autocomplete="off" autofocus
        aria-activedescendant={found.length > 0 ? `palette-${current}` : undefined}
        value={text} onKeyDown={press}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setAt(0);
        }}
      />
      <ul id="palette-found" class="palette-found" role="listbox" aria-label="Found">
        {found.map((one, index) => (
          <li
            key={one.href + one.label} id={`palette-${index}`} role="option"
            aria-selected={index === current} onClick={() => open(one)}
            ref={(element) => {
              if (index === current) element?.scrollIntoView({ block: "nearest" });
            }}
          >
            {one.label}<small>{one.kind}</small>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="soft" role="status">Nothing has that name.</p>}
    </Dialog>
  );
}
