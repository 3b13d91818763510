// What is seen and pressed: the launcher, the panel with its log, notices and the message box.
// Draws what it receives and passes on what people do; knows neither server nor storage.
import { firstChars, unitsOf } from "#ui/characters.ts";
import { createAnnouncer } from "./announce.ts";
import { canBeHeard, windowOf, type CallState } from "./calling.ts";
import { palette } from "./colour.ts";
import { icon, ICONS, make } from "./elements.ts";
import { createForm } from "./form.ts";
import { createLog } from "./log.ts";
import { readPosition, type Options } from "./options.ts";
import { isAnswering, type Talk } from "./store.ts";

export interface Actions {
  open(): void;
  close(): void;
  send(text: string): void;
  stop(): void;
  retry(): void;
  askForPerson(): void;
  renew(): void;
  draft(text: string): void;
  answerForm(variables: Record<string, string>): void;
  call(): void;
}

/** What there is to draw. */
interface Shown {
  talk: Talk;
  isOffline: boolean;
  unread: number;
  typingUntil: number;
  call: CallState;
}

export interface View {
  draw(shown: Shown): void;
  /** Puts a call's controls in place of the message box; null: takes them away. */
  placeCall(bar: HTMLElement | null): void;
  /** Puts the focus where one types, or back to where one came from. */
  focus(): void;
}

const MESSAGE_CHARS_MAX = 2000;

function createParts(options: Options) {
  const title = make("h2", { id: "title", dir: "auto" });
  const subtitle = make("p", { dir: "auto" }, options.subtitle ?? "");
  const callWords = (words: string): HTMLElement => options.callText === undefined
    ? make("span", { class: "quiet" }, words)
    : make("span", {}, options.callText);
  const elsewhere = { target: "_blank", rel: "noopener", href: windowOf(options) };
  const call = make("button", { class: "call", type: "button" },
    icon(ICONS.call), callWords("Start a call"));
  const callWindow = make("a", { class: "call", ...elsewhere },
    icon(ICONS.call), callWords("Start a call (opens a new window)"));
  const close = make("button", { type: "button", "aria-label": "Close the chat" }, icon(ICONS.close));
  const box = make("textarea", {
    rows: "1", maxlength: String(unitsOf(MESSAGE_CHARS_MAX)), placeholder: "Your message…", dir: "auto",
    "aria-label": "Your message", enterkeyhint: "send",
  });
  const send = make("button", { class: "main", "aria-label": "Send" }, icon(ICONS.send, true));
  const stop = make("button", { class: "main", type: "button", "aria-label": "Stop the reply" },
    icon(ICONS.stop));
  const answering = make("p", { role: "status" });
  const person = make("button", { type: "button" }, "Talk to a person");
  const words = make("p");
  const retry = make("button", { type: "button" }, "Try again");
  const renew = make("button", { type: "button" }, "New conversation");
  const openWindow = make("a", elsewhere, "Call in a new window");
  return {
    launcher: make("button", { class: "launcher", type: "button", "aria-haspopup": "dialog" }),
    panel: make("dialog", { class: "panel", "aria-labelledby": "title" }),
    header: make("header", {}, make("div", {}, title, subtitle), call, callWindow, close),
    desk: make("div", { class: "notice desk" }, answering, person),
    answering, person,
    notice: make("div", { class: "notice", role: "status" }, words, retry, openWindow, renew),
    say: make("form", { class: "say" }, box, send, stop),
    region: make("div", { class: "quiet", "aria-live": "polite" }),
    title, subtitle, call, callWindow, openWindow, close, box, send, stop, words, retry, renew,
  };
}

type Parts = ReturnType<typeof createParts>;

/** Keys and clicks. */
function listen(parts: Parts, actions: Actions): void {
  const { box, panel, say } = parts;
  const submit = (): void => {
    if (box.value.trim() === "" || parts.send.ariaDisabled === "true") return;
    actions.send(firstChars(box.value.trim(), MESSAGE_CHARS_MAX));
    box.value = "";
    box.focus();
  };
  parts.launcher.addEventListener("click", actions.open);
  parts.close.addEventListener("click", actions.close);
  parts.call.addEventListener("click", actions.call);
  parts.retry.addEventListener("click", () => {
    actions.retry();
    box.focus();
  });
  parts.person.addEventListener("click", () => {
    actions.askForPerson();
    box.focus();
  });
  parts.renew.addEventListener("click", actions.renew);
  parts.stop.addEventListener("click", () => {
    actions.stop();
    box.focus();
  });
  box.addEventListener("input", () => actions.draft(box.value));
  box.addEventListener("keydown", (event) => {
    // Enter also ends the composing of a Japanese or Chinese word.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    // Held down since it pressed the button whose place the box has taken.
    if (!event.repeat) submit();
  });
  say.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  panel.addEventListener("keydown", (event) => {
    // What is typed here is no shortcut of the page.
    event.stopPropagation();
    if (event.key === "Escape" && !event.isComposing) actions.close();
  });
  panel.addEventListener("cancel", (event) => {
    event.preventDefault();
    actions.close();
  });
}

/** Keyboards of telephones cover the page without making it smaller. */
function followKeyboard(root: HTMLElement): void {
  const viewport = window.visualViewport;
  viewport?.addEventListener("resize", () =>
    root.style.setProperty("--height", `${Math.round(viewport.height)}px`));
}

function fillLauncher(
  { launcher }: Parts, options: Options, name: string, isCalling: boolean,
): void {
  const { launcherText: text, launcherSubtext: more } = options;
  launcher.replaceChildren(icon(isCalling ? ICONS.call : ICONS.chat));
  launcher.classList.toggle("calling", isCalling);
  launcher.ariaLabel = isCalling ? "Back to the call" : text ? null : `Chat with ${name}`;
  if (text === undefined || isCalling) return;
  launcher.append(make("span", { dir: "auto" }, text, ...(more ? [make("small", {}, more)] : [])));
}

/** What the assistant's settings and the page's attributes decide. */
function dress(root: HTMLElement, parts: Parts, options: Options, { talk, call }: Shown): void {
  const { name = "", widget_settings: widget = {} } = talk.settings ?? {};
  const theme = options.theme ?? widget.theme;
  const isDark = theme === "dark"
    || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const colours = palette(options.color ?? widget.color ?? "", isDark);
  for (const [property, value] of Object.entries(colours)) root.style.setProperty(property, value);
  root.style.colorScheme = isDark ? "dark" : "light";
  const { x, y } = readPosition(options.position, widget.position);
  Object.assign(root.dataset, { x, y });
  root.hidden = false;
  root.dir = getComputedStyle(document.documentElement).direction;
  parts.title.textContent = options.title ?? name;
  parts.subtitle.hidden = options.subtitle === undefined;
  fillLauncher(parts, options, name, call.isLive);
}

function drawNotice(parts: Parts, { talk, isOffline, call }: Shown): void {
  const { notice, words, retry, renew } = parts;
  const problem = talk.problem || call.problem;
  const isBad = problem !== "";
  const text = isBad ? problem
    : talk.hasEnded ? "This conversation has ended."
    : isOffline ? "No connection. The chat goes on as soon as it is back." : "";
  if (words.textContent !== text) words.textContent = text;
  notice.classList.toggle("bad", isBad);
  notice.hidden = text === "";
  retry.hidden = talk.problem === "";
  parts.openWindow.hidden = !call.offersWindow || talk.problem !== "";
  // What could not be reached would not be reached by a new one either.
  renew.hidden = !talk.hasEnded && (talk.problem === "" || talk.isUnreached);
}

function drawUnread({ launcher }: Parts, { unread }: Shown): void {
  launcher.classList.toggle("unread", unread > 0);
  launcher.dataset.unread = String(unread);
  launcher.ariaDescription = unread > 0 ? `${unread} new` : null;
}

/** Who answers, or how to ask for a person. */
function drawDesk(
  { answering, desk: bar, person }: Parts, { talk, typingUntil }: Shown, isHidden: boolean,
): void {
  const { desk = "assistant", person: name, settings } = talk;
  const text = desk === "waiting" ? "A person has been asked to join."
    : name ? `${name} is ${Date.now() < typingUntil ? "typing…" : "answering."}` : "";
  if (answering.textContent !== text) answering.textContent = text;
  person.hidden = desk !== "assistant" || settings?.person !== true;
  bar.hidden = isHidden || (text === "" && person.hidden);
}

export function createView(shadow: ShadowRoot, options: Options, actions: Actions): View {
  const parts = createParts(options);
  const { launcher, panel, box } = parts;
  // Seen once it is known how it looks.
  const root = make("div", { class: "root", hidden: "" }, launcher, panel);
  const log = createLog(createAnnouncer(parts.region));
  const form = createForm(options, actions.answerForm);
  panel.append(parts.header, log.element, form.element, parts.desk, parts.notice, parts.say,
    parts.region);
  shadow.append(root);
  listen(parts, actions);
  followKeyboard(root);
  let dressed: Talk["settings"] = null;
  let last: Shown | null = null;
  let wasCalling = false;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (last) dress(root, parts, options, last);
  });

  const show = (isOpen: boolean): void => {
    if (isOpen === panel.open) return;
    launcher.hidden = isOpen;
    if (!isOpen) panel.close();
    // It covers all of a small screen, so nothing behind it may be reached.
    else if (matchMedia("(max-width: 480px)").matches) panel.showModal();
    else panel.show();
  };
  let bar: HTMLElement | null = null;
  const view: View = {
    draw: (shown) => {
      const { talk, call } = shown;
      if (talk.settings !== dressed || call.isLive !== wasCalling) {
        dress(root, parts, options, shown);
      }
      if (last === null) box.value = talk.draft;
      dressed = talk.settings;
      wasCalling = call.isLive;
      last = { ...shown };
      const asks = options.fields.length > 0 && talk.variables === null;
      const isBusy = isAnswering(talk);
      form.element.hidden = !asks;
      log.element.hidden = asks;
      parts.say.hidden = asks || talk.hasEnded || bar !== null;
      const calls = talk.settings?.calls === true && !asks && canBeHeard(talk.settings);
      parts.call.hidden = !calls || call.isForbidden;
      parts.callWindow.hidden = !calls || !call.isForbidden;
      parts.call.ariaDisabled = String(call.isLive);
      parts.send.hidden = isBusy;
      // What was not reached is sent by itself, before anything else.
      parts.send.ariaDisabled = String(isBusy || talk.isUnreached);
      parts.stop.hidden = !isBusy;
      drawUnread(parts, shown);
      drawDesk(parts, shown, asks || talk.hasEnded);
      drawNotice(parts, shown);
      show(talk.isOpen);
      log.draw(talk);
    },
    placeCall: (next) => {
      const isHere = panel.open && (bar ?? panel).contains(shadow.activeElement);
      bar?.remove();
      bar = next;
      if (bar) panel.insertBefore(bar, parts.say);
      parts.say.hidden = bar !== null;
      if (isHere) view.focus();
    },
    focus: () => {
      if (!panel.open) return launcher.focus();
      if (bar) return bar.querySelector<HTMLElement>(".end")?.focus();
      const first = form.element.hidden ? box : form.element.querySelector("input, textarea");
      if (first instanceof HTMLElement) first.focus();
    },
  };
  return view;
}
