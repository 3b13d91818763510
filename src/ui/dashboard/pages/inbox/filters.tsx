// What the inbox shows: queue, search and filters, all kept in the address, so that a reload and a
// bookmark find them again.
import { useEffect, useState } from "preact/hooks";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { SelectField } from "#ui/dashboard/kit/controls.tsx";
import { useLabels } from "#ui/dashboard/pages/assistants/lookups.ts";

export const QUEUES = [
  { id: "waiting", label: "Waiting" }, { id: "mine", label: "Mine" }, { id: "all", label: "All" },
] as const;
export type Queue = (typeof QUEUES)[number]["id"];

interface Shown {
  queue: Queue;
  search: string;
  /** Its number; empty: any. */
  label: string;
  assistant: string;
  /** `callback` or `unread`; empty: whatever is there. */
  only: string;
}

/** As it was when the inbox was left. */
let last: Shown = { queue: "waiting", search: "", label: "", assistant: "", only: "" };

function inAddress(): Shown | null {
  const given = new URLSearchParams(location.search);
  if (given.size === 0) return null;
  const read = (name: string): string => given.get(name) ?? "";
  const queue = QUEUES.find(({ id }) => id === read("queue"))?.id ?? "waiting";
  return {
    queue, search: read("search"), label: read("label"), assistant: read("assistant"),
    only: read("only"),
  };
}

function writeAddress(shown: Shown | null): void {
  const said = Object.entries(shown ?? {}).filter(([name, value]) =>
    value !== "" && !(name === "queue" && value === "waiting"));
  const search = new URLSearchParams(said as [string, string][]).toString();
  const { pathname, hash } = location;
  history.replaceState(history.state, "", `${pathname}${search && `?${search}`}${hash}`);
}

export function useShown(): [Shown, (part: Partial<Shown>) => void] {
  const [shown, setShown] = useState<Shown>(() => inAddress() ?? last);
  useEffect(() => {
    last = shown;
    writeAddress(shown);
  }, [shown]);
  useEffect(() => () => writeAddress(null), []);
  return [shown, (part) => setShown((before) => ({ ...before, ...part }))];
}

export const queryOf = ({ queue, label, assistant, only }: Shown, search: string) => ({
  queue,
  ...search === "" ? {} : { search },
  ...label === "" ? {} : { label_id: Number(label) },
  ...assistant === "" ? {} : { assistant_id: Number(assistant) },
  ...only === "callback" ? { callback: true } : {},
  ...only === "unread" ? { unread: true } : {},
});

export function Filters({ shown, change }: {
  shown: Shown; change(part: Partial<Shown>): void;
}) {
  const assistants = useAssistants().value ?? [];
  const labels = useLabels().value ?? [];
  return (
    <div class="inbox-filters">
      <SelectField
        label="Only" hidesLabel value={shown.only} onInput={(only) => change({ only })}
        options={[
          { value: "", label: "Everything" }, { value: "unread", label: "Unread" },
          { value: "callback", label: "Callbacks" },
        ]}
      />
      {labels.length > 0 && (
        <SelectField
          label="Label" hidesLabel value={shown.label} onInput={(label) => change({ label })}
          options={[
            { value: "", label: "Any label" },
            ...labels.map(({ id, name }) => ({ value: String(id), label: name })),
          ]}
        />
      )}
      {assistants.length > 1 && (
        <SelectField
          label="Assistant" hidesLabel value={shown.assistant}
          onInput={(assistant) => change({ assistant })}
          options={[
            { value: "", label: "Any assistant" },
            ...assistants.map(({ id, name }) => ({ value: String(id), label: name })),
          ]}
        />
      )}
    </div>
  );
}
