// All settings of an assistant, in sections that open; each says in one line what is set in it. The
// server's complaints are shown at their fields, in whichever section those are.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Notice } from "#ui/dashboard/kit/layout.tsx";
import { useDraft, type Draft, type Field } from "./draft.ts";
import { goTo, SearchSettings } from "./search.tsx";
import type { SectionSpec } from "./section.ts";
import { BASICS } from "./sections/basics.tsx";
import { CONVERSATION } from "./sections/conversation.tsx";
import { EVALUATION } from "./sections/evaluation.tsx";
import { FUNCTIONS } from "./sections/functions.tsx";
import { KNOWLEDGE } from "./sections/knowledge.tsx";
import { LIMITS } from "./sections/limits.tsx";
import { MODEL } from "./sections/model.tsx";
import { PEOPLE } from "./sections/people.tsx";
import { PROMPT } from "./sections/prompt.tsx";
import { VOICE } from "./sections/voice.tsx";
import { WEBHOOKS } from "./sections/webhooks.tsx";
import { WIDGET } from "./sections/widget.tsx";

const SECTIONS: readonly SectionSpec[] = [
  BASICS, PROMPT, MODEL, VOICE, CONVERSATION, FUNCTIONS, KNOWLEDGE, WIDGET, PEOPLE, WEBHOOKS,
  LIMITS, EVALUATION,
];
const ALL = new Set(SECTIONS.map(({ id }) => id));
const FIRST = new Set([BASICS.id, PROMPT.id]);

const wrongIn = ({ errors }: Draft, { fields }: SectionSpec): number =>
  Object.keys(errors).filter((name) => fields.includes(name.split(".")[0] as Field)).length;

export function Settings({ isShown }: { isShown: boolean }) {
  const draft = useDraft();
  const place = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<ReadonlySet<string>>(FIRST);
  const { failures, errors } = draft;
  useEffect(() => {
    if (failures === 0) return;
    const wrong = SECTIONS.filter((section) => wrongIn(draft, section) > 0);
    if (wrong.length === 0) return;
    if (!isShown) location.hash = `#/assistants/${draft.record.id}`;
    setOpen((before) => new Set([...before, ...wrong.map(({ id }) => id)]));
  }, [failures]);
  // Runs after the sections are open and their fields drawn, and after the scrolling of a change of
  // tab.
  const shown = useRef(0);
  useEffect(() => {
    if (shown.current === failures || !isShown) return;
    const timer = setTimeout(() => {
      const field = place.current?.querySelector<HTMLElement>("[aria-invalid]");
      if (!field) return;
      shown.current = failures;
      field.focus({ preventScroll: true });
      field.scrollIntoView({ block: "center" });
    });
    return () => clearTimeout(timer);
  }, [failures, errors, open, isShown]);
  const [wanted, setWanted] = useState<{ section: SectionSpec; name: string } | null>(null);
  // After the section is open and its fields are drawn.
  useEffect(() => {
    if (wanted && place.current) goTo(place.current, wanted.section, wanted.name);
  }, [wanted]);
  const isAllOpen = open.size === ALL.size;
  return (
    <div class="assistants-settings" ref={place}>
      <div class="assistants-all">
        <SearchSettings
          sections={SECTIONS}
          open={(section, name) => {
            setOpen((before) => new Set([...before, section.id]));
            setWanted({ section, name });
          }}
        />
        <Button kind="quiet" onClick={() => setOpen(isAllOpen ? new Set() : ALL)}>
          {isAllOpen ? "Close all sections" : "Open all sections"}
        </Button>
      </div>
      {SECTIONS.map((section) => (
        <Section
          key={section.id} section={section} isOpen={open.has(section.id)}
          onToggle={(isOpen) => setOpen((before) => {
            const after = new Set(before);
            if (isOpen) after.add(section.id);
            else after.delete(section.id);
            return after;
          })}
        />
      ))}
    </div>
  );
}

/**
 * Settings with many fields, or that others depend on: their warnings are shown above the fields.
 */
const OF_PARTS: ReadonlySet<string> = new Set<Field>([
  "tools", "secondary_language_ids", "widget_settings", "filler_config", "variables",
  "post_call_schema", "label_ids", "tool_ids", "desk", "mode",
]);

function Warnings({ texts }: { texts: string[] }) {
  if (texts.length === 0) return null;
  return <Notice tone="warn"><ul>{texts.map((text) => <li key={text}>{text}</li>)}</ul></Notice>;
}

function Section({ section, isOpen, onToggle }: {
  section: SectionSpec; isOpen: boolean; onToggle(isOpen: boolean): void;
}) {
  const draft = useDraft();
  const { title, fields, Summary, Body } = section;
  const wrong = wrongIn(draft, section);
  const isChanged = draft.changed.some((name) => fields.includes(name));
  const warned = Object.entries(draft.warnings)
    .map(([name, text]) => ({ name: name.split(".")[0] as Field, text }))
    .filter(({ name }) => fields.includes(name));
  return (
    <details
      class="card assistants-section" open={isOpen} data-section={section.id}
      onToggle={(event) => {
        if (event.currentTarget.open !== isOpen) onToggle(event.currentTarget.open);
      }}
    >
      <summary>
        <h2>{title}</h2>
        {!isOpen && <span class="assistants-summary"><Summary /></span>}
        {wrong > 0 && <span class="badge bad">{wrong} to fix</span>}
        {warned.length > 0 && <span class="badge warn">{warned.length} without effect</span>}
        {wrong === 0 && isChanged && <span class="badge warn">Changed</span>}
      </summary>
      {isOpen && (
        <div class="assistants-body">
          <Warnings texts={warned.flatMap(({ name, text }) => OF_PARTS.has(name) ? [text] : [])} />
          <Body />
        </div>
      )}
    </details>
  );
}
