// What stands above long lists: saved views, the columns shown, and the list as a file.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { csvLine } from "#core/csv.ts";
import { addressOf } from "#ui/dashboard/data/address.ts";
import { Needs } from "#ui/dashboard/data/rights.tsx";
import type { Rows } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { SHARED, useData } from "#ui/dashboard/data/use-data.ts";
import { asListed, type Listed } from "./chosen.tsx";
import { Button, sends, TextField } from "./controls.tsx";
import { useToastedWork, useToasts } from "./dialog.tsx";
import { download, downloadCsv } from "./download.ts";
import { instant } from "./format.ts";
import type { Column } from "./table.tsx";
import { shownZone } from "./zone.ts";

interface ListToolsProps<T> {
  list: "conversations" | "calls";
  fields: Record<string, string>;
  columns: Column<T>[];
  /** Applies a view or a choice of columns: the query of the address without `?`. */
  show(query: string): void;
  /** Loads a page of the whole list; its `next` is null on the last one. */
  readOn(page: unknown): Promise<{ rows: T[]; next: unknown }>;
}

export function ListTools<T extends object>(props: ListToolsProps<T>) {
  const { list, fields, show } = props;
  return (
    <div class="list-tools" role="group" aria-label="View">
      <Views list={list} fields={fields} show={show} />
      <Columns {...props} />
      <Export {...props} />
    </div>
  );
}

/** `chosen`: titles of columns, separated by commas; empty: all. The first column always stays. */
export function chosenColumns<T>(columns: Column<T>[], chosen: string): Column<T>[] {
  if (chosen === "") return columns;
  const titles = new Set(chosen.split(","));
  const kept = columns.filter(({ title }, at) => at === 0 || titles.has(title));
  return kept.map((column) => ({ ...column, priority: 1 }));
}

/** Its content is rendered only while it is open. */
function Menu({ title, children }: { title: string; children: () => ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="list-menu" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && children()}
    </details>
  );
}

function Columns<T>({ columns, fields, show }: ListToolsProps<T>) {
  const shown = new Set(chosenColumns(columns, fields.columns ?? "").map(({ title }) => title));
  const toggle = (title: string): void => {
    const next = columns.map((column) => column.title)
      .filter((one) => (one === title ? !shown.has(one) : shown.has(one)));
    const isAll = next.length === columns.length;
    show(addressOf({ ...fields, columns: isAll ? "" : next.join(",") }));
  };
  return (
    <Menu title="Columns">
      {() => (
        <fieldset>
          <legend class="hidden-visually">Columns shown</legend>
          {columns.slice(1).map(({ title }) => (
            <label key={title}>
              <input type="checkbox" checked={shown.has(title)} onChange={() => toggle(title)} />
              {title}
            </label>
          ))}
        </fieldset>
      )}
    </Menu>
  );
}

type ViewsProps = Pick<ListToolsProps<object>, "list" | "fields" | "show">;

/** Loads nothing before somebody opens it. */
const Views = (props: ViewsProps) => <Menu title="Views">{() => <OpenViews {...props} />}</Menu>;

function OpenViews({ list, fields, show }: ViewsProps) {
  const api = useApi();
  const toasts = useToasts();
  const [name, setName] = useState("");
  const { isBusy, run } = useToastedWork();
  const views = useData("views", () => unwrap(api.GET("/user/views")), [], SHARED);
  const own = views.value?.data.filter((view) => view.list === list) ?? [];
  const query = addressOf(fields);
  const save = async (view: { name: string; query: string }): Promise<void> => {
    await unwrap(api.POST("/user/views", { body: { list, ...view } }));
    setName("");
    views.reload();
  };
  const remove = (view: (typeof own)[number]): void => run(async () => {
    await unwrap(api.DELETE("/user/views/{id}", { params: { path: { id: view.id } } }));
    views.reload();
    toasts.notify(`The view “${view.name}” was deleted.`, () => save(view));
  });
  return (
    <div>
      {own.map((view) => (
        <span key={view.id} class="list-view">
          <Button kind={view.query === query ? "main" : "plain"} onClick={() => show(view.query)}>
            {view.name}
          </Button>
          <Button
            kind="quiet" needs="answer" icon="close" label={`Delete the view ${view.name}`}
            onClick={() => remove(view)}
          />
        </span>
      ))}
      <Needs right="answer">
        <form onSubmit={sends(() => run(() => save({ name, query })))}>
          <TextField
            label="Save this view as" value={name} maxLength={80} onInput={setName}
            hint={query === ""
              ? "Filter the list or choose columns first: a view keeps those."
              : "The filters and columns as they are now, for everybody in the account."}
          />
          <Button
            type="submit" isBusy={isBusy} disabled={name.trim() === "" || query === ""}
          >
            Save view
          </Button>
        </form>
      </Needs>
    </div>
  );
}

const EXPORTED_MAX = 5000;

const isTime = (name: string): boolean => name.endsWith("_at");

/**
 * Times are in the zone of the list, which the header names, in a format that spreadsheets read.
 */
function csvOf(rows: object[]): string {
  const zone = shownZone();
  const clock = new Intl.DateTimeFormat("sv", {
    timeZone: zone, dateStyle: "short", timeStyle: "medium",
  });
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = rows.map((row) => csvLine(names.map((name) => {
    const value = (row as Record<string, unknown>)[name];
    return isTime(name) && typeof value === "string" ? clock.format(instant(value)) : value;
  })));
  const head = csvLine(names.map((name) => isTime(name) ? `${name} (${zone})` : name));
  return [head, ...lines].join("\n");
}

/** Exports the selected rows, as the list has them now. */
export function ExportChosen<T extends Listed>({ name, rows, list }: {
  name: ListToolsProps<T>["list"]; rows: T[]; list: Rows<T>;
}) {
  const save = (): void =>
    downloadCsv(csvOf(asListed(rows, list)), name);
  return <Button onClick={save}>Export as CSV</Button>;
}

function Export<T extends object>({ list, readOn }: ListToolsProps<T>) {
  const toasts = useToasts();
  const { isBusy, run } = useToastedWork();
  const take = (format: "csv" | "json") => run(async () => {
    const rows: T[] = [];
    let page: unknown = null;
    do {
      const read = await readOn(page);
      rows.push(...read.rows);
      page = read.next;
    } while (page !== null && rows.length < EXPORTED_MAX);
    if (format === "csv") downloadCsv(csvOf(rows), list);
    else {
      const text = JSON.stringify(rows, null, 2);
      download(new Blob([text], { type: "application/json" }), `${list}.json`);
    }
    if (page !== null) toasts.notify(`The file has the newest ${rows.length}; filter the list to get others.`);
  });
  return (
    <Menu title="Export">
      {() => (
        <div>
          <Button isBusy={isBusy} onClick={() => take("csv")}>As CSV</Button>
          <Button isBusy={isBusy} onClick={() => take("json")}>As JSON</Button>
        </div>
      )}
    </Menu>
  );
}
