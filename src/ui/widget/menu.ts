// The menu of what is seldom wanted: a new conversation, the chat by e-mail, and sound. A button in
// the panel's header opens it.
import { icon, make } from "./elements.ts";
import type { Actions, Shown } from "./view.ts";
import type { Say } from "./texts.ts";

const DOTS = "M12 5v.01M12 12v.01M12 19v.01";

export function createMenu(
  actions: Pick<Actions, "restart" | "sound"> & { askTranscript(): void }, say: Say,
) {
  const toggle = make("button", { type: "button", "aria-expanded": "false" }, icon(DOTS));
  const restart = make("button", { type: "button" });
  const transcript = make("button", { type: "button" });
  const sound = make("button", { type: "button" });
  const list = make("div", { class: "menu", hidden: "", role: "group" }, restart, transcript, sound);
  const show = (isOpen: boolean): void => {
    list.hidden = !isOpen;
    toggle.ariaExpanded = String(isOpen);
    if (isOpen) list.querySelector<HTMLElement>("button:not([hidden])")?.focus();
  };
  toggle.addEventListener("click", () => show(list.hidden === true));
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    // Otherwise the browser itself closes a modal dialog, which the panel is on small screens.
    event.preventDefault();
    show(false);
    toggle.focus();
  });
  list.addEventListener("focusout", ({ relatedTarget: next }) => {
    if (next !== toggle && !(next instanceof Node && list.contains(next))) show(false);
  });
  // Safari does not focus a pressed button: `focusout` would hide the list before the click.
  for (const part of [toggle, list]) {
    part.addEventListener("mousedown", (event) => event.preventDefault());
  }
  for (const [button, act] of [
    [restart, actions.restart], [transcript, actions.askTranscript], [sound, actions.sound],
  ] as const) {
    button.addEventListener("click", () => {
      show(false);
      toggle.focus();
      act();
    });
  }
  return {
    toggle, list,
    draw: ({ talk }: Shown): void => {
      toggle.ariaLabel = list.ariaLabel = say("more");
      restart.textContent = say("renew");
      restart.hidden = talk.conversation === null || talk.isClosing
        || !talk.items.some(({ role }) => role === "user");
      transcript.textContent = say("transcript");
      transcript.hidden = talk.settings?.transcripts !== true || restart.hidden === true;
      sound.textContent = say(talk.hasSound ? "sound_off" : "sound_on");
    },
  };
}
