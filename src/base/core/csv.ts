// Rows of CSV that spreadsheets open, for the server's own files and for those a page makes.

/**
 * Spreadsheets take a cell that begins like this for a formula. Where they split at semicolons, as
 * in most of Europe, quotes hold no cell together: a new one begins after a semicolon or a line
 * break. Smileys (`;-)`) and list items (`- one`) are not formulas.
 */
const FORMULA = new RegExp([
  "^(?=[=+\\-@\\t\\r])",
  "(?=[=+@]|-[^)])(?<=;[ \"]*)",
  "(?=[=+@]|-[^)\\s])(?<=[\\r\\n][ \"]*)",
].join("|"), "g");

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value as string | number);
  const safe = typeof value === "number" ? text : text.replaceAll(FORMULA, "'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A cell without the quote that kept its beginning from being taken for a formula. */
export const unguarded = (text: string): string => text.replace(/^'(?=[=+\-@])/, "");

/** One line, without its end; objects as JSON. */
export const csvLine = (values: readonly unknown[]): string => values.map(cell).join(",");
