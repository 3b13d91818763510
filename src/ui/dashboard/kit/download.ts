/** Safari begins to read some time after the click; until then the URL must stay valid. */
const KEPT_MS = 60_000;

/** Saves content of a page as a file. */
export function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}

/** Excel and LibreOffice recognize UTF-8 only after this byte order mark. */
const MARK = "\uFEFF";

export const downloadCsv = (content: BlobPart, name: string): void =>
  download(new Blob([MARK, content], { type: "text/csv" }), `${name}.csv`);
