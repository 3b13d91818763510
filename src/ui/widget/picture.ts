// Pictures on a canvas, not in an <img>: a page's content security policy may forbid images from
// elsewhere, but not what is drawn. Faces of those who answer, and previews of attached files.
import { make } from "./elements.ts";

const SCALE = 2;

/** Replaces the target's content with the picture, scaled down; rejects if it is not a picture. */
async function paint(target: HTMLElement, picture: Promise<Blob>, px: number): Promise<void> {
  const bitmap = await createImageBitmap(await picture);
  const shrink = Math.min(1, (px * SCALE) / Math.min(bitmap.width, bitmap.height));
  const canvas = make("canvas", {
    width: String(Math.round(bitmap.width * shrink)),
    height: String(Math.round(bitmap.height * shrink)),
    "aria-hidden": "true",
  });
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  target.replaceChildren(canvas);
}

function blobOf(dataUrl: string): Blob {
  const [head = "", data = ""] = dataUrl.split(",");
  const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
  return new Blob([bytes], { type: /^data:([^;]+)/.exec(head)?.[1] ?? "" });
}

const initialsOf = (name: string): string =>
  name.split(/\s+/).slice(0, 2).map((word) => [...word][0] ?? "").join("").toUpperCase();

const FACE_PX = 28;

/** A round picture, or the initials. */
export function createFace() {
  const element = make("span", { class: "face", "aria-hidden": "true", hidden: "" });
  let shown = "";
  return {
    element,
    draw: (name: string | null, image: string | null, needsImage = false): void => {
      element.hidden = name === null || (needsImage && image === null);
      const next = `${name} ${image}`;
      if (next === shown) return;
      shown = next;
      element.replaceChildren(initialsOf(name ?? ""));
      if (image !== null) {
        paint(element, Promise.resolve().then(() => blobOf(image)), FACE_PX).catch(() => undefined);
      }
    },
  };
}

const PREVIEW_PX = 160;

/** Stays empty if the server lacks the file or is out of reach; the file's name is beside it. */
export function preview(url: string): HTMLElement {
  const element = make("span", { class: "preview" });
  const picture = fetch(url, { credentials: "omit" }).then((response) => response.blob());
  paint(element, picture, PREVIEW_PX).catch(() => undefined);
  return element;
}
