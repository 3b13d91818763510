// What may be attached to a message: the server's own limits, so that pages can refuse a file
// before they send it. Used by the widget and by the dashboard's inbox.
/// <reference lib="dom" />

export const FILES_MAX = 4;
export const FILE_MB_MAX = 10;

/** For the `accept` attribute of file fields. */
export const ATTACHABLE = "image/png,image/jpeg,image/gif,image/webp,application/pdf";

/** Why a file cannot be attached; null: it can. */
export function faultOf({ type, size }: Pick<File, "type" | "size">): "kind" | "large" | null {
  if (!ATTACHABLE.split(",").includes(type)) return "kind";
  return size > FILE_MB_MAX * 1024 * 1024 ? "large" : null;
}

/** Beside a copied image Firefox puts only its address as text. */
const ADDRESS = /^(https?|data|blob):\S*$/;

/**
 * The files on the clipboard; none where they are only a picture of the text copied with them, as
 * for the cells of a table. A file's name or an image's address does not count as such text.
 */
export function pastedFiles(clipboard: DataTransfer | null): File[] {
  const files = [...clipboard?.files ?? []];
  const text = clipboard?.getData("text/plain") ?? "";
  const isOfFiles = text === "" || ADDRESS.test(text) || files.some(({ name }) => text.includes(name));
  return isOfFiles ? files : [];
}

/** Takes files dropped on `place`, which a browser would otherwise open instead of the page. */
export function takeDrops(
  place: Document | HTMLElement, take: (files: File[]) => void, signal?: AbortSignal,
): void {
  for (const type of ["dragover", "drop"] as const) {
    place.addEventListener(type, (event) => {
      const { types = [], files = [] } = (event as DragEvent).dataTransfer ?? {};
      if (!types.includes("Files")) return;
      event.preventDefault();
      if (type === "drop") take([...files]);
    }, signal ? { signal } : {});
  }
}
