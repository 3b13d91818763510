// Choosing files for the next message: the button, what was chosen, and the files of messages that
// were sent. Part of the panel's bundle.
import { ATTACHABLE, pastedFiles, takeDrops } from "#ui/attachments.ts";
import type { Attachment } from "./api.ts";
import { icon, make } from "./elements.ts";
import { preview } from "./picture.ts";
import type { Actions, Shown } from "./view.ts";
import type { Say } from "./texts.ts";

const CLIP = "M20 11l-8 8a5 5 0 0 1-7-7l9-9a3.5 3.5 0 0 1 5 5l-9 9a2 2 0 0 1-3-3l8-8";

export function createAttaching(
  actions: Pick<Actions, "attach" | "detach">, panel: HTMLElement, box: HTMLElement, say: Say,
) {
  const input = make("input", { type: "file", accept: ATTACHABLE, multiple: "", hidden: "" });
  const button = make("button", { type: "button", class: "clip" }, icon(CLIP));
  const list = make("div", { class: "chosen", hidden: "" });
  const take = (files: readonly File[]): boolean => {
    // The button is invisible if files are not accepted, and while the message box is hidden.
    const isTaken = button.getClientRects().length > 0 && files.length > 0;
    if (isTaken) actions.attach([...files]);
    return isTaken;
  };
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    take([...input.files ?? []]);
    input.value = "";
    box.focus();
  });
  box.addEventListener("paste", (event) => {
    if (take(pastedFiles(event.clipboardData))) event.preventDefault();
  });
  takeDrops(panel, take);
  let shown: readonly Attachment[] = [];
  return {
    button, input, list,
    draw: ({ talk }: Shown, isBusy: boolean): void => {
      button.hidden = talk.settings?.widget_settings.attachments !== true;
      button.ariaLabel = button.title = say("attach");
      button.disabled = isBusy;
      button.ariaBusy = String(isBusy);
      list.hidden = talk.attached.length === 0;
      if (shown === talk.attached) return;
      shown = talk.attached;
      list.replaceChildren(...shown.map(({ id, name }) => {
        const label = say("attach_remove", { name });
        const remove = make("button", { type: "button", "aria-label": label }, name, " ×");
        remove.addEventListener("click", () => {
          actions.detach(id);
          box.focus();
        });
        return remove;
      }));
    },
  };
}

/** A link to each file, with a preview of pictures. */
export const fileLinks = (
  files: readonly Attachment[], urlOf: (id: string) => string,
): HTMLElement[] => files.map(({ id, name, type }) => {
  const url = urlOf(id);
  const look = type.startsWith("image/") ? [preview(url)] : [];
  return make("a", { class: "file", href: url, target: "_blank", rel: "noopener noreferrer" },
    ...look, name);
});
