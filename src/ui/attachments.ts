// What may be attached to a message, as the server judges it too: pages say so before anything is
// sent. Used by the widget and by the dashboard's inbox.
/// <reference lib="dom" />

export const FILES_MAX = 4;
export const FILE_MB_MAX = 10;

/** For `accept` of a field of files. */
export const ATTACHABLE = "image/png,image/jpeg,image/gif,image/webp,application/pdf";

/** Why a file cannot be attached; null: it can. */
export function faultOf({ type, size }: Pick<File, "type" | "size">): "kind" | "large" | null {
  if (!ATTACHABLE.split(",").includes(type)) return "kind";
  return size > FILE_MB_MAX * 1024 * 1024 ? "large" : null;
}

/** All the text there is beside a copied image (its address) in Firefox. */
const ADDRESS = /^(https?|data|blob):\S*$/;

/**
 * Files of the clipboard; none where they are a picture of the words that come with it, as cells of
 * a table have one. A file's name, or an image's address, are no such words.
 */
export function pastedFiles(clipboard: DataTransfer | null): File[] {
  const files = [...clipboard?.files ?? []];
  const text = clipboard?.getData("text/plain") ?? "";
  const isOfFiles = text === "" || ADDRESS.test(text) || files.some(({ name }) => text.includes(name));
  return isOfFiles ? files : [];
}

/** Takes files that are dropped there: a browser would open them in place of the page. */
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
