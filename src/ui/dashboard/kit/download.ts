/** Safari begins to read some time after the click; until then the address has to stand. */
const KEPT_MS = 60_000;

/** Gives what a page has as a file. */
export function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}

/** Excel and LibreOffice read UTF-8 as such only behind this mark. */
const MARK = "\uFEFF";

export const downloadCsv = (content: BlobPart, name: string): void =>
  download(new Blob([MARK, content], { type: "text/csv" }), `${name}.csv`);
