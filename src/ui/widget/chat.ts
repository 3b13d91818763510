// The panel of the chat: the log, notices and the message box, and what is said and asked in it. A
// bundle of its own that shell.ts loads when somebody opens the chat, so that nobody else waits for
// it. Draws what it receives and passes on what people do; knows neither server nor storage.
/// <reference lib="dom" />
import { charsOf } from "#ui/characters.ts";
import { isComposing } from "#ui/composing.ts";
import { createAnnouncer } from "./announce.ts";
import { createAttaching } from "./attaching.ts";
import { awayOf, createCallback, sayAway } from "./away.ts";
import { canBeHeard, windowOf } from "./calling.ts";
import { icon, ICONS, make, sends } from "./elements.ts";
import { dress } from "./dress.ts";
import { createForm } from "./form.ts";
import { createLog } from "./log.ts";
import { PANEL_STYLES } from "./panel-styles.ts";
import { fieldsOf, type Options } from "./options.ts";
import type { Actions, ShellParts, Shown, View } from "./view.ts";
import { createFace } from "./picture.ts";
import { createMenu } from "./menu.ts";
import { createOpinion } from "./opinion.ts";
import { asksOpinion, isAnswering, type Talk } from "./store.ts";
import { createTranscript } from "./transcript.ts";
import type { Say } from "./texts.ts";

export { renderMarkdown } from "./markdown.ts";

export type Panel = View;

const MESSAGE_CHARS_MAX = 2000;

/** Pasted text is not silently truncated: it stays in the box, unsent, until it fits. */
const isTooLong = ({ box }: Pick<Parts, "box">): boolean =>
  charsOf(box.value.trim()) > MESSAGE_CHARS_MAX;

const button = (attributes: Record<string, string> = {}, ...children: (Node | string)[]) =>
  make("button", { type: "button", ...attributes }, ...children);

function createParts(options: Options) {
  const title = make("h2", { id: "title", dir: "auto" });
  const subtitle = make("p", { dir: "auto" }, options.subtitle ?? "");
  const callWords = (): HTMLElement => options.callText === undefined
    ? make("span", { class: "quiet" }) : make("span", {}, options.callText);
  const elsewhere = { target: "_blank", rel: "noopener", href: windowOf(options) };
  const call = button({ class: "call" }, icon(ICONS.call), callWords());
  const callWindow = make("a", { class: "call", ...elsewhere }, icon(ICONS.call), callWords());
  const close = button({}, icon(ICONS.close));
  const box = make("textarea", { rows: "1", dir: "auto", enterkeyhint: "send" });
  const send = make("button", { class: "main" }, icon(ICONS.send, true));
  const stop = button({ class: "main" }, icon(ICONS.stop));
  const answering = make("p", { role: "status" });
  const [person, reach, retry, renew] = [button(), button(), button(), button()];
  const words = make("p");
  const openWindow = make("a", elsewhere);
  const [face, ownFace] = [createFace(), createFace()];
  return {
    face, ownFace, hasFiles: () => false,
    panel: make("dialog", { class: "panel", "aria-labelledby": "title" }),
    header: make("header", {}, ownFace.element, make("div", {}, title, subtitle), call, callWindow, close),
    desk: make("div", { class: "notice desk" }, face.element, answering, person, reach),
    answering, person, reach,
    notice: make("div", { class: "notice", role: "status" }, words, retry, openWindow, renew),
    say: make("form", { class: "say" }, box, send, stop),
    region: make("div", { class: "quiet", "aria-live": "polite" }),
    title, subtitle, call, callWindow, openWindow, close, box, send, stop, words, retry, renew,
  };
}

type Parts = ReturnType<typeof createParts>;

/** Sets all labels, in the visitor's language. */
function label(parts: Parts, options: Options, say: Say, { talk }: Shown): void {
  const name = talk.settings?.name ?? "";
  parts.title.textContent = options.title ?? name;
  parts.subtitle.hidden = options.subtitle === undefined;
  parts.close.ariaLabel = say("close");
  parts.box.ariaLabel = say("box");
  parts.box.placeholder = say("box_placeholder");
  parts.send.ariaLabel = say("send");
  parts.stop.ariaLabel = say("stop");
  for (const key of ["person", "retry", "renew"] as const) parts[key].textContent = say(key);
  parts.reach.textContent = say("callback");
  parts.openWindow.textContent = say("open_window");
  if (options.callText !== undefined) return;
  parts.call.lastChild?.replaceWith(make("span", { class: "quiet" }, say("call")));
  parts.callWindow.lastChild?.replaceWith(make("span", { class: "quiet" }, say("call_window")));
}

/** Keys and clicks. */
function listen(parts: Parts, actions: Actions): void {
  const { box, panel, say } = parts;
  const submit = (): void => {
    const isEmpty = box.value.trim() === "" && !parts.hasFiles();
    if (isEmpty || parts.send.ariaDisabled === "true") return;
    actions.send(box.value.trim());
    box.value = "";
    box.focus();
  };
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
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    // Enter may still be held down from the button whose place the box has taken.
    if (!event.repeat) submit();
  });
  sends(say, submit);
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !isComposing(event)) actions.close();
  });
  panel.addEventListener("cancel", (event) => {
    event.preventDefault();
    actions.close();
  });
}

/** Redraws while the text in the box is too long, and once when it fits again. */
function followLength(parts: Parts, redraw: () => void): void {
  let wasTooLong = false;
  parts.box.addEventListener("input", () => {
    const isNow = isTooLong(parts);
    if (isNow || wasTooLong) redraw();
    wasTooLong = isNow;
  });
}

/** Keyboards of telephones cover the page without making it smaller, and iPhones shift it too. */
function followKeyboard(root: HTMLElement, signal: AbortSignal): void {
  const viewport = window.visualViewport;
  const follow = (): void => {
    // Pinching to zoom changes the visual viewport as well.
    if (!viewport || viewport.scale > 1) return;
    // A page's own `zoom` scales these lengths too.
    const zoom = root.currentCSSZoom ?? 1;
    root.style.setProperty("--height", `${viewport.height / zoom}px`);
    root.style.setProperty("--top", `${viewport.offsetTop / zoom}px`);
  };
  viewport?.addEventListener("resize", follow, { signal });
  viewport?.addEventListener("scroll", follow, { signal });
}

/** The panel covers all of a small screen, so it is modal there: nothing behind is reachable. */
function createShow(panel: HTMLDialogElement, { shadow, signal }: ShellParts) {
  const small = matchMedia("(max-width: 480px)");
  const show = (isOpen: boolean): void => {
    if (isOpen === panel.open) return;
    if (!isOpen) panel.close();
    else if (small.matches) panel.showModal();
    else panel.show();
  };
  // The screen was turned, or the window made larger.
  small.addEventListener("change", () => {
    if (!panel.open) return;
    const focused = shadow.activeElement;
    show(false);
    show(true);
    if (focused instanceof HTMLElement) focused.focus();
  }, { signal });
  return show;
}

/** Nothing was sent yet if there is neither a message nor a conversation. */
const sayProblem = ({ problem, pending, conversation }: Talk, say: Say): string =>
  problem === "" ? ""
    : say(pending || conversation !== null || problem === "busy" ? problem : "not_started");

function drawNotice(parts: Parts, say: Say, { talk, isOffline, call, fileProblem }: Shown): void {
  const { notice, words, retry, renew, box } = parts;
  const tooLong = isTooLong(parts)
    ? say("too_long", { count: charsOf(box.value.trim()), max: MESSAGE_CHARS_MAX }) : "";
  const problem = sayProblem(talk, say) || tooLong || call.problem || fileProblem;
  const isBad = problem !== "";
  const text = isBad ? problem
    : talk.hasEnded ? `${talk.isThanked ? say("csat_thanks") : ""} ${say("ended")}`.trim()
    : isOffline ? say("offline") : "";
  if (words.textContent !== text) words.textContent = text;
  notice.classList.toggle("bad", isBad);
  notice.hidden = text === "";
  retry.hidden = talk.problem === "";
  parts.openWindow.hidden = !call.offersWindow || talk.problem !== "";
  // While the server is unreachable, a new conversation would not reach it either.
  renew.hidden = !talk.hasEnded && (talk.problem === "" || talk.isUnreached);
}

/** Who answers, or how to ask for a person. */
function drawDesk(
  { answering, desk: bar, face, person, reach }: Parts, say: Say, { talk, typingUntil }: Shown,
  isHidden: boolean,
): void {
  const { desk = "assistant", person: name, settings } = talk;
  const { place } = talk;
  const away = awayOf(talk);
  const line = place === null ? "" : ` ${say("queue", { place })}`;
  face.draw(desk === "person" ? name : null, talk.face);
  const text = away ? sayAway(away, say, settings?.texts_language ?? "")
    : desk === "waiting" ? say("waiting") + line
    : name ? say(Date.now() < typingUntil ? "typing" : "answering", { name }) : "";
  if (answering.textContent !== text) answering.textContent = text;
  person.hidden = desk !== "assistant" || settings?.person !== true;
  reach.hidden = away?.callback !== true || talk.hasCallback;
  bar.classList.toggle("away", away !== null);
  bar.hidden = isHidden || (text === "" && person.hidden);
}

function drawButtons(parts: Parts, { talk, call, uploads }: Shown, asks: boolean): void {
  const isBusy = isAnswering(talk);
  const calls = talk.settings?.calls === true && !asks && canBeHeard(talk.settings);
  parts.call.hidden = !calls || call.isForbidden;
  parts.callWindow.hidden = !calls || !call.isForbidden;
  parts.call.ariaDisabled = String(call.isLive);
  parts.send.hidden = isBusy;
  // A message that did not reach the server is retried automatically, before any other.
  parts.send.ariaDisabled = String(
    isBusy || talk.isUnreached || uploads > 0 || isTooLong(parts));
  parts.stop.hidden = !isBusy;
}

/** What not every assistant has: files, the chat by e-mail, a face; and the menu. */
function createExtras(
  parts: Parts, { options, actions, say }: Pick<ShellParts, "options" | "actions" | "say">,
) {
  const attaching = createAttaching(actions, parts.panel, parts.box, say);
  const transcript = createTranscript(actions, say);
  const callback = createCallback(actions, say);
  parts.reach.addEventListener("click", () => callback.open(options.visitor ?? {}));
  const menu = createMenu({
    ...actions,
    askTranscript: () => transcript.open(options.visitor?.email ?? ""),
  }, say);
  parts.say.prepend(attaching.input, attaching.button);
  for (const { element } of [transcript, callback]) {
    element.addEventListener("click", () => {
      if (element.hidden) parts.box.focus();
    });
  }
  parts.close.before(menu.toggle);
  return {
    /** Above the message box. */
    elements: [transcript.element, callback.element, attaching.list],
    menuList: menu.list,
    draw: (shown: Shown): void => {
      const { settings, conversation } = shown.talk;
      menu.draw(shown);
      attaching.draw(shown, shown.uploads > 0);
      parts.ownFace.draw(settings?.name ?? "", settings?.widget_settings.avatar ?? null, true);
      if (conversation !== null) return;
      transcript.close();
      callback.close();
    },
  };
}

/** Puts the panel into the root, and its stylesheet into the shadow root. */
export function openPanel(given: ShellParts & { root: HTMLElement }): Panel {
  const { shadow, root, options, actions, say, signal } = given;
  dress(shadow, PANEL_STYLES);
  const parts = createParts(options);
  const { panel, box } = parts;
  const log = createLog(createAnnouncer(parts.region), say, actions);
  const extras = createExtras(parts, { options, actions, say });
  parts.hasFiles = () => (last?.talk.attached.length ?? 0) > 0;
  followLength(parts, () => last && view.draw(last));
  const opinion = createOpinion(actions, say);
  const form = createForm(options, say, actions.answerForm);
  panel.append(parts.header, extras.menuList, log.element, form.element, parts.desk, parts.notice,
    opinion.element, ...extras.elements, parts.say, parts.region);
  root.append(panel);
  listen(parts, actions);
  followKeyboard(root, signal);
  const show = createShow(panel, given);
  let labelled: Shown["talk"]["settings"] = null;
  let last: Shown | null = null;
  let bar: HTMLElement | null = null;

  const view: Panel = {
    draw: (shown) => {
      const { talk } = shown;
      const focused = panel.contains(shadow.activeElement) ? shadow.activeElement : null;
      if (talk.settings !== labelled) {
        label(parts, options, say, shown);
        form.label(talk.settings);
        opinion.label();
        log.label();
      }
      labelled = talk.settings;
      // What is drawn again may be older than what has been typed since.
      if (talk !== last?.talk && box.value !== talk.draft) box.value = talk.draft;
      last = { ...shown };
      const asks = fieldsOf(options, talk.settings).length > 0 && talk.variables === null;
      form.element.hidden = !asks;
      log.element.hidden = asks;
      const judges = asksOpinion(talk);
      opinion.element.hidden = !judges;
      parts.say.hidden = asks || talk.hasEnded || judges || bar !== null;
      extras.draw(shown);
      drawButtons(parts, shown, asks);
      drawDesk(parts, say, shown, asks || talk.hasEnded);
      drawNotice(parts, say, shown);
      show(talk.isOpen);
      log.draw(talk);
      // Out of the panel, keys would no longer reach it.
      if (focused?.closest("[hidden]")) view.focus();
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
      if (!panel.open) return;
      if (bar) return bar.querySelector<HTMLElement>(".end")?.focus();
      const asked = [form.element, opinion.element].find((element) => !element.hidden);
      const first = asked?.querySelector("input, textarea")
        ?? (parts.say.hidden ? parts.renew : box);
      if (first instanceof HTMLElement) first.focus();
    },
  };
  return view;
}
