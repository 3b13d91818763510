// All assistants of the account, searched by name and filtered by what they are.
import { useState } from "preact/hooks";
import { useAddressed } from "#ui/dashboard/data/address.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";
import { Button, SelectField, TextField, type Option } from "#ui/dashboard/kit/controls.tsx";
import { when, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Page, Status } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";
import { CreateAssistant } from "./create.tsx";
import type { Assistant } from "./draft.ts";
import { TemplateGallery } from "./templates.tsx";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import {
  useFolders, useLabels, useLanguages, useNumbers, useVoices,
} from "./lookups.ts";
import "./assistants.css";

const ALL = { search: "", type: "", status: "", folder: "", label: "" };
type Filter = typeof ALL;

function passes({ search, type, status, folder, label }: Filter, assistant: Assistant): boolean {
  return assistant.name.toLowerCase().includes(search.trim().toLowerCase())
    && (type === "" || assistant.type === type)
    && (status === "" || assistant.status === status)
    && (folder === "" || assistant.folder_id === Number(folder))
    && (label === "" || assistant.label_ids.includes(Number(label)));
}

export function Assistants() {
  const api = useApi();
  const list = useAssistants({ freshMs: 0 });
  useFocusReload(list.reload);
  const [filter, setFilter] = useAddressed("assistants", ALL);
  const [isCreating, setCreating] = useState(false);
  const [isChoosing, setChoosing] = useState(location.hash === "#/templates");
  const columns = useColumns();
  const found = list.value?.filter((assistant) => passes(filter, assistant)) ?? null;
  const isNew = list.value?.length === 0;
  return (
    <Page
      title="Assistants"
      actions={
        <>
          <Button needs="build" onClick={() => setChoosing(true)}>Templates</Button>
          <Button kind="main" needs="build" icon="add" onClick={() => setCreating(true)}>New assistant</Button>
        </>
      }
    >
      <Card class="flush">
        {!isNew && <Filters filter={filter} onChange={setFilter} />}
        <Table
          label="Assistants" columns={columns} rows={rowsOf(found, list.error, list.reload)}
          rowKey={({ id }) => id} href={({ id }) => `#/assistants/${id}`}
          empty={isNew ? (
            <Empty icon="assistants" title="No assistants yet">
              <p>An assistant answers calls, chats and your website’s visitors.</p>
              <Button kind="main" needs="build" onClick={() => setCreating(true)}>Create the first one</Button>
              <Button needs="build" onClick={() => setChoosing(true)}>Start from a template</Button>
            </Empty>
          ) : (
            <Empty icon="search" title="No matching assistants">
              <Button onClick={() => setFilter(ALL)}>Show all</Button>
            </Empty>
          )}
        />
      </Card>
      {isChoosing && (
        <TemplateGallery onChange={list.reload} onClose={() => {
          setChoosing(false);
          if (location.hash === "#/templates") location.hash = "#/assistants";
        }} />
      )}
      {isCreating && (
        <CreateAssistant
          onClose={() => setCreating(false)}
          create={async (body) => {
            const { data } = await unwrap(api.POST("/user/assistant", { body }));
            location.hash = `#/assistants/${data.id}`;
          }}
        />
      )}
    </Page>
  );
}

const named = (items: { id: number; name: string }[], all: string): Option[] =>
  [{ value: "", label: all }, ...items.map(({ id, name }) => ({ value: String(id), label: name }))];

const TYPES: Option[] = [
  { value: "", label: "All types" }, { value: "inbound", label: "Inbound" },
  { value: "outbound", label: "Outbound" },
];
const STATUSES: Option[] = [
  { value: "", label: "All states" }, { value: "active", label: "Active" },
  { value: "inactive", label: "Inactive" },
];

function Filters({ filter, onChange }: { filter: Filter; onChange(filter: Filter): void }) {
  const folders = useFolders().value ?? [];
  const labels = useLabels().value ?? [];
  const select = (label: string, name: keyof Filter, options: Option[]) => (
    <SelectField
      label={label} value={filter[name]} options={options}
      onInput={(value) => onChange({ ...filter, [name]: value })}
    />
  );
  return (
    <div class="filters" role="search" aria-label="Assistants">
      <TextField
        label="Search" type="search" placeholder="Name" value={filter.search}
        onInput={(search) => onChange({ ...filter, search })}
      />
      {select("Type", "type", TYPES)}
      {select("Status", "status", STATUSES)}
      {folders.length > 0 && select("Folder", "folder", named(folders, "All folders"))}
      {labels.length > 0 && select("Label", "label", named(labels, "All labels"))}
    </div>
  );
}

function useColumns(): Column<Assistant>[] {
  const languages = useLanguages().value;
  const voices = useVoices("pipeline", null).value;
  const numbers = useNumbers().value;
  const nameOf = (items: { id: number; name: string }[] | null, id: number): string =>
    items === null ? "…" : items.find((item) => item.id === id)?.name ?? "–";
  return [
    { title: "Name", grow: 1.8, cell: ({ name }) => <span class="two">{name}</span> },
    { title: "Status", grow: 0.9, fits: "6.6rem", cell: ({ status }) => <Status code={status} /> },
    { title: "Type", priority: 2, fits: "7rem", isWords: true, cell: ({ type }) => words(type) },
    { title: "Mode", priority: 3, fits: "7rem", cell: ({ mode }) => words(mode) },
    {
      title: "Language, voice", priority: 3, fits: "10rem",
      cell: ({ language_id, voice_id }) => (
        <span class="two">{nameOf(languages, language_id)}, {nameOf(voices, voice_id)}</span>
      ),
    },
    {
      title: "Number", priority: 2, fits: "10.6rem",
      cell: ({ phone_number_id: id }) => {
        if (id !== null && numbers === null) return "…";
        const number = numbers?.find((one) => one.id === id)?.phone_number;
        return number ? formatPhone(number) : "–";
      },
    },
    {
      title: "Updated", priority: 2, fits: "7.6rem", align: "end",
      cell: ({ updated_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
    },
  ];
}
