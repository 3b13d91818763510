// Rows of tables as text: each repeats the names of its columns, so that a row found by itself
// still makes sense. Used by csv.ts and xlsx.ts.
import type { BlockList } from "./blocks.ts";

export const COLUMNS_MAX = 200;

/** `names`: null for a table with a single row, which has no head. */
export function addRow(
  list: BlockList, names: readonly string[] | null, row: readonly string[],
): void {
  const cells = row.slice(0, COLUMNS_MAX).flatMap((cell, at) => {
    const name = names?.[at] ?? "";
    return cell === "" ? [] : [name === "" ? cell : `${name}: ${cell}`];
  });
  list.text(cells.join(" | "));
}
