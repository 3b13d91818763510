// Asking for the chat by e-mail. Opened from the menu; part of the panel's bundle.
import { make, sends } from "./elements.ts";
import type { Actions } from "./view.ts";
import type { Say } from "./texts.ts";

export function createTranscript({ transcript }: Pick<Actions, "transcript">, say: Say) {
  const title = make("span");
  const email = make("input", {
    type: "email", required: "", autocomplete: "email", maxlength: "254",
  });
  const send = make("button", { class: "main" });
  const cancel = make("button", { type: "button" });
  const word = make("p", { role: "status" });
  const element = make("form", { class: "mail", hidden: "" },
    make("label", {}, title, email),
    word, make("div", { class: "row" }, send, cancel));
  const close = (): void => {
    element.hidden = true;
  };
  cancel.addEventListener("click", close);
  sends(element, () => {
    const to = email.value.trim();
    send.disabled = true;
    word.textContent = "";
    transcript(to).then(() => {
      word.textContent = say("transcript_sent", { email: to });
      send.hidden = true;
      cancel.textContent = say("dismiss");
    }, () => {
      word.textContent = say("transcript_failed");
    }).finally(() => {
      send.disabled = false;
    });
  });
  return {
    element, close,
    open: (known: string): void => {
      title.textContent = say("email");
      send.textContent = say("send");
      cancel.textContent = say("cancel");
      word.textContent = "";
      send.hidden = false;
      email.value ||= known;
      element.hidden = false;
      email.focus();
    },
  };
}
