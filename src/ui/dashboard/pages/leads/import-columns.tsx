// The meaning of each column of an import's file, guessed by the server and changed by hand, and a
// preview of the first rows. Shown by import.tsx.
import type { paths } from "#client/client.ts";
import { SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";

export type PreviewAnswer =
  paths["/user/leads/import/preview"]["post"]["responses"][200]["content"]["application/json"];
type Preview = PreviewAnswer["data"];

/** The server reads no more than this for the preview. */
export const PREVIEW_BYTES = 256 * 1024;

interface Column {
  use: string;
  /** The variable's name; kept while the column is used for something else. */
  name: string;
}

/** The file's columns in their order. */
export type Columns = Column[];

const USES = [
  { value: "number", label: "Phone number" },
  { value: "variable", label: "Variable" },
  { value: "none", label: "Left out" },
];

export function guessedColumns({ columns, mapping }: Preview): Columns {
  return columns.map(({ name }, at) => {
    if (mapping.phone_number === at + 1) return { use: "number", name };
    const isVariable = mapping.variables.some(({ column }) => column === at + 1);
    return { use: isVariable ? "variable" : "none", name };
  });
}

/** The import's `mapping`; null: no column has the phone number. */
export function mappingOf(columns: Columns): object | null {
  const number = columns.findIndex(({ use }) => use === "number");
  if (number < 0) return null;
  const variables = columns.map(({ use, name }, at) => ({ use, name: name.trim(), column: at + 1 }))
    .filter(({ use }) => use === "variable").map(({ column, name }) => ({ column, name }));
  return { phone_number: number + 1, variables };
}

function FirstRows({ preview, columns }: { preview: Preview; columns: Columns }) {
  const shown = columns.map((column, at) => ({ ...column, at })).filter(({ use }) => use !== "none");
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label="First rows">
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">Row</th>
            {shown.map(({ use, name, at }) => (
              <th key={at} scope="col">{use === "number" ? "Phone number" : name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {preview.rows.map(({ row, cells }) => (
            <tr key={row}><td>{row}</td>{shown.map(({ at }) => <td key={at}>{cells[at]}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function ImportColumns({ preview, columns, onInput }: {
  preview: Preview; columns: Columns; onInput(columns: Columns): void;
}) {
  const change = (at: number, part: Partial<Column>): void =>
    onInput(columns.map((column, index) => {
      if (index === at) return { ...column, ...part };
      // Only one column can be the phone number.
      return part.use === "number" && column.use === "number" ? { ...column, use: "none" } : column;
    }));
  const number = columns.findIndex(({ use }) => use === "number");
  return (
    <div class="leads-report">
      <fieldset class="leads-variables">
        <legend>Columns</legend>
        {columns.map(({ use, name }, at) => {
          const label = preview.columns[at]?.name || `Column ${at + 1}`;
          return (
            <div key={at} class="leads-column">
              <SelectField
                label={label} value={use} options={USES}
                onInput={(value) => change(at, { use: value })}
              />
              {use === "variable" && (
                <TextField
                  label={`Variable of ${label}`} hidesLabel value={name} maxLength={64}
                  autoComplete="off" onInput={(text) => change(at, { name: text })}
                />
              )}
            </div>
          );
        })}
      </fieldset>
      {preview.rows.length > 0 && <FirstRows preview={preview} columns={columns} />}
      {number >= 0 && preview.rows.length > 0 && preview.columns[number]?.numbers === 0 && (
        <p class="soft">
          None of these rows has a phone number with its country code in that column.
        </p>
      )}
    </div>
  );
}
