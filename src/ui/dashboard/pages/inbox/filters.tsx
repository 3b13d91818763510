// What the inbox shows: queue, search and filters.
import { useAddressed } from "#ui/dashboard/data/address.ts";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { SelectField } from "#ui/dashboard/kit/controls.tsx";
import { useLabels } from "#ui/dashboard/pages/assistants/lookups.ts";
import { namedOptions } from "#ui/dashboard/kit/by-name.ts";

export const QUEUES = [
  { id: "waiting", label: "Waiting" }, { id: "mine", label: "Mine" }, { id: "all", label: "All" },
] as const;
export type Queue = (typeof QUEUES)[number]["id"];

const NO_FILTER = {
  queue: "waiting", search: "",
  /** The label's number; empty: any. */
  label: "",
  assistant: "",
  /** `callback` or `unread`; empty: no filter. */
  only: "",
};
type Shown = typeof NO_FILTER;

export function useShown() {
  const [fields, setFields] = useAddressed("inbox", NO_FILTER);
  const queue = QUEUES.find(({ id }) => id === fields.queue)?.id ?? "waiting";
  const change = (part: Partial<Shown>): void => setFields({ ...fields, ...part });
  return { shown: { ...fields, queue }, change };
}

export const queryOf = (
  { queue, label, assistant, only }: ReturnType<typeof useShown>["shown"], search: string,
) => ({
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
          options={[{ value: "", label: "Any assistant" }, ...namedOptions(assistants)]}
        />
      )}
    </div>
  );
}
