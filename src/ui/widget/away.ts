// Outside office hours: says when somebody will be there, and asks how the visitor wants to be
// reached then. Part of the panel's bundle.
import { make, sends } from "./elements.ts";
import type { Away, Wish } from "./api.ts";
import type { Actions } from "./view.ts";
import type { Talk } from "./store.ts";
import type { Say } from "./texts.ts";

const NAME_CHARS_MAX = "120";
const ADDRESS_CHARS_MAX = "254";
const WISH_CHARS_MAX = "1000";

/** Null: the visitor is not waiting for a person, or people are there by now. */
export function awayOf({ desk, away }: Talk): Away | null {
  if (desk !== "waiting" || !away) return null;
  const isBack = away.opens_at !== null && Date.parse(away.opens_at) <= Date.now();
  return isBack ? null : away;
}

/** Day and hour are in the visitor's time zone, written in the widget's language. */
export function sayAway({ message, opens_at: at }: Away, say: Say, language: string): string {
  const words = message || say("away");
  if (at === null) return words;
  const time = new Date(at).toLocaleString(language || undefined, {
    weekday: "long", day: "numeric", month: "long", hour: "numeric", minute: "2-digit",
  });
  return `${words} ${say("away_until", { time })}`;
}

export function createCallback({ callback }: Pick<Actions, "callback">, say: Say) {
  const field = (type: string, name: string, autocomplete: string, maxlength: string) => ({
    words: make("span"),
    input: make("input", { type, name, autocomplete, maxlength, dir: "auto" }),
  });
  const name = field("text", "name", "name", NAME_CHARS_MAX);
  const phone = field("tel", "phone", "tel", ADDRESS_CHARS_MAX);
  const email = field("email", "email", "email", ADDRESS_CHARS_MAX);
  const wish = {
    words: make("span"),
    input: make("textarea", { rows: "2", maxlength: WISH_CHARS_MAX, dir: "auto" }),
  };
  name.input.required = true;
  const fields = [name, phone, email, wish];
  const send = make("button", { class: "main" });
  const cancel = make("button", { type: "button" });
  const word = make("p", { role: "status" });
  const labels = fields.map(({ words, input }) => make("label", {}, words, input));
  const element = make("form", { class: "mail", hidden: "" }, ...labels, word,
    make("div", { class: "row" }, send, cancel));
  const given = (): Wish => ({
    name: name.input.value.trim(), phone: phone.input.value.trim(),
    email: email.input.value.trim(), wish: wish.input.value.trim(),
  });
  const close = (): void => {
    element.hidden = true;
  };
  const done = (): void => {
    word.textContent = say("callback_thanks");
    for (const label of labels) label.hidden = true;
    send.hidden = true;
    cancel.textContent = say("dismiss");
    cancel.focus();
  };
  cancel.addEventListener("click", close);
  sends(element, () => {
    const wanted = given();
    word.textContent = "";
    if (wanted.phone === "" && wanted.email === "") {
      word.textContent = say("callback_either");
      phone.input.focus();
      return;
    }
    send.disabled = true;
    callback(wanted).then(done, () => {
      word.textContent = say("callback_failed");
    }).finally(() => {
      send.disabled = false;
    });
  });
  return {
    element, close,
    open: (known: Partial<Pick<Wish, "name" | "email">>): void => {
      name.words.textContent = say("callback_name");
      phone.words.textContent = say("callback_phone");
      email.words.textContent = say("email");
      wish.words.textContent = say("optional", { label: say("callback_wish") });
      send.textContent = say("send");
      cancel.textContent = say("cancel");
      name.input.value ||= known.name ?? "";
      email.input.value ||= known.email ?? "";
      word.textContent = "";
      for (const label of labels) label.hidden = false;
      send.hidden = false;
      element.hidden = false;
      name.input.focus();
    },
  };
}
