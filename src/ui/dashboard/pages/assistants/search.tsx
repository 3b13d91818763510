// Finds a setting by its label, its API name or its hint, and goes there.
import { useId, useState } from "preact/hooks";
import { sends, TextField } from "#ui/dashboard/kit/controls.tsx";
import type { Field } from "./draft.ts";
import { tellings } from "./labels.ts";
import type { SectionSpec } from "./section.ts";

const SHOWN_MAX = 8;

interface Found {
  /** The API's name; empty: the section itself. */
  name: string;
  label: string;
  section: SectionSpec;
  /** Lower is better. */
  rank: number;
}

/** How well the words fit; null: they do not. */
function rankOf(needle: string, label: string, name: string, hint: string): number | null {
  const spoken = label.toLowerCase();
  const called = `${name} ${name.replaceAll("_", " ")}`;
  if (spoken.startsWith(needle)) return 0;
  if (spoken.includes(needle)) return 1;
  if (called.includes(needle)) return 2;
  const all = `${spoken} ${called} ${hint.toLowerCase()}`;
  return needle.split(/\s+/).every((word) => all.includes(word)) ? 3 : null;
}

function find(sections: readonly SectionSpec[], text: string): Found[] {
  const needle = text.trim().toLowerCase();
  if (needle === "") return [];
  const of = (name: string): SectionSpec | undefined =>
    sections.find(({ fields }) => fields.includes(name.split(".")[0] as Field));
  const settings = tellings().flatMap(([name, { label, hint = "" }]): Found[] => {
    const [section, rank] = [of(name), rankOf(needle, label, name, hint)];
    return section && rank !== null ? [{ name, label, section, rank }] : [];
  });
  const whole = sections.flatMap((section): Found[] => {
    const rank = rankOf(needle, section.title, "", "");
    return rank === null ? [] : [{ name: "", label: section.title, section, rank: rank - 0.5 }];
  });
  return [...whole, ...settings].sort((one, other) => one.rank - other.rank).slice(0, SHOWN_MAX);
}

export function SearchSettings({ sections, open }: {
  sections: readonly SectionSpec[];
  /** Opens the section, then goes to the field. */
  open(section: SectionSpec, name: string): void;
}) {
  const [text, setText] = useState("");
  const id = useId();
  const found = find(sections, text);
  const go = ({ section, name }: Found): void => {
    setText("");
    open(section, name);
  };
  return (
    <form
      class="assistants-search" role="search" aria-label="Settings"
      onSubmit={sends(() => {
        if (found[0]) go(found[0]);
      })}
      onKeyDown={(event) => {
        if (event.key === "Escape") setText("");
      }}
    >
      <TextField
        label="Find a setting" hidesLabel type="search" value={text} onInput={setText}
        placeholder="Find a setting, e.g. silence or max_duration" autoComplete="off"
      />
      {text.trim() !== "" && (
        <ul class="assistants-found" id={id} aria-label="Settings found">
          {found.map((one) => (
            <li key={`${one.section.id} ${one.name}`}>
              <button type="button" onClick={() => go(one)}>
                <span>{one.label}</span>
                <small>{one.section.title}{one.name && ` · ${one.name}`}</small>
              </button>
            </li>
          ))}
          {found.length === 0 && <li class="soft">No setting has that name.</li>}
        </ul>
      )}
    </form>
  );
}

/**
 * Goes to the field of that name in the section, else to the closest related field, else to the
 * section.
 */
export function goTo(place: HTMLElement, section: SectionSpec, name: string): void {
  const details = place.querySelector<HTMLElement>(`[data-section="${section.id}"]`);
  if (!details) return;
  const fields = [...details.querySelectorAll<HTMLElement>("[data-setting]")];
  const called = (field: HTMLElement): string =>
    (field.dataset.setting ?? "").replaceAll(/\.\d+(?=\.|$)/g, "");
  const field = name === "" ? undefined
    : fields.find((one) => called(one) === name)
      ?? fields.find((one) => name.startsWith(`${called(one)}.`))
      ?? fields.find((one) => called(one).startsWith(`${name}.`));
  const target = field ?? details.querySelector<HTMLElement>("summary");
  target?.focus({ preventScroll: true });
  target?.scrollIntoView({ block: "center" });
}
