// The messages. Draws only those that changed, stays at the newest unless somebody scrolled away,
// and has new replies announced in whole sentences, not in the pieces they arrive in.
import type { Announcer } from "./announce.ts";
import { fileLinks } from "./attaching.ts";
import { icon, make } from "./elements.ts";
import { renderMarkdown } from "./markdown.ts";
import type { Actions } from "./view.ts";
import type { Item, Talk } from "./store.ts";
import type { Say } from "./texts.ts";

/** Nearer than this to the end counts as the end. */
const END_PX = 40;

function remark(text: string, isBusy = false): HTMLElement {
  return make("p", { class: isBusy ? "remark busy" : "remark" }, text);
}

const spoken = (name: string): string => name.replaceAll(/[_-]+/g, " ");

const speakerOf = (item: Item): string => (item.role === "spoken" ? item.by : item.role);
/** Messages of colleagues stand on the assistant's side. */
const classOf = (item: Item): string =>
  (speakerOf(item) === "colleague" ? "assistant colleague" : speakerOf(item));
const isPartial = (item: Item): boolean => item.role === "spoken" && !item.isFinal;

const noteOf = ({ key, name = "" }: Item & { role: "note" }, say: Say): string =>
  say(key, { name });

function fill(element: HTMLElement, item: Item, say: Say, fileOf: Actions["fileOf"]): void {
  if (item.role === "note") return element.replaceChildren(noteOf(item, say));
  const speaker = speakerOf(item);
  const named = speaker === "user" ? "you" : speaker === "colleague" ? speaker : "assistant";
  const author = item.role === "assistant" ? item.author : undefined;
  const who = author === undefined
    ? make("span", { class: "quiet" }, `${say(named)}: `)
    : make("b", {}, author);
  if (item.role === "user") {
    const lost = item.isLost ? [remark(say("not_sent"))] : [];
    return element.replaceChildren(who, item.text, ...fileLinks(item.files ?? [], fileOf), ...lost);
  }
  if (item.role !== "assistant") return element.replaceChildren(who, item.text);
  const atWork = [...new Set(Object.values(item.tools))];
  const remarks = atWork.map((name) => remark(say("using", { name: spoken(name) }), true));
  if (item.turn !== null && item.text === "" && atWork.length === 0) {
    remarks.push(remark(say("writing"), true));
  }
  if (item.wasStopped) remarks.push(remark(say("stopped")));
  element.replaceChildren(
    who, ...renderMarkdown(item.text, item.turn === null, say),
    ...fileLinks(item.files ?? [], fileOf), ...remarks);
}

const UP = "M7 11l4-8a3 3 0 0 1 3 3v3h5a2 2 0 0 1 2 2l-2 8a2 2 0 0 1-2 2H7zM7 11H3v10h4";
const DOWN = "M7 13l4 8a3 3 0 0 0 3-3v-3h5a2 2 0 0 0 2-2l-2-8a2 2 0 0 0-2-2H7zM7 13H3V3h4";

const NAMES = ["up", "down"] as const;

interface Thumbs {
  element: HTMLElement;
  draw(item: Item, isWanted: boolean): void;
}

/** The rating of a complete reply; it stands beside the message, not in it. */
function createThumbs(say: Say, rate: Actions["rate"]): Thumbs {
  let reply: number | undefined;
  const buttons = NAMES.map((name) => {
    const button = make("button", { type: "button" }, icon(name === "up" ? UP : DOWN));
    button.addEventListener("click", () => {
      if (reply !== undefined) rate(reply, name);
    });
    return button;
  });
  const element = make("div", { class: "thumbs" }, ...buttons);
  return {
    element,
    draw: (item, isWanted) => {
      const isWhole = item.role === "assistant" && item.turn === null && !item.wasStopped;
      reply = isWhole ? item.reply : undefined;
      element.hidden = !isWanted || reply === undefined;
      buttons.forEach((button, at) => {
        button.ariaLabel = say(at === 0 ? "rate_up" : "rate_down");
        button.ariaPressed = String(item.role === "assistant" && item.rating === NAMES[at]);
      });
    },
  };
}

interface Log {
  element: HTMLElement;
  draw(talk: Talk): void;
  /** In words of another language. */
  label(): void;
}

/** The reply that has not begun to arrive. */
const WAITING: Item = { role: "assistant", text: "", turn: 0, wasStopped: false, tools: {} };

/** Stays at the end of a log that has been read to it; the result says whether it has. */
function followEnd(log: HTMLElement): () => boolean {
  let isAtEnd = true;
  let height = 0;
  log.addEventListener("scroll", () => {
    // While the panel is closed the log has no height, and stays where it was left.
    if (log.clientHeight === 0) return;
    // A new height moves the end before the observer below has followed it.
    const seen = Math.max(height, log.clientHeight);
    isAtEnd = log.scrollHeight - log.scrollTop - seen < END_PX;
  });
  // An on-screen keyboard takes some of its height, and so does a message box that grows.
  new ResizeObserver(() => {
    height = log.clientHeight;
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  }).observe(log);
  return () => isAtEnd;
}

export function createLog(
  announcer: Announcer, say: Say, { rate, fileOf }: Pick<Actions, "rate" | "fileOf">,
): Log {
  const element = make("div", {
    // It is a log to screen readers, but the announcer's region announces it, in whole sentences.
    class: "log", role: "log", "aria-live": "off", tabindex: "0",
  });
  const rows: { item: Item; element: HTMLElement; thumbs: Thumbs }[] = [];
  let isRated = true;
  const fillRow = ({ item, element: row, thumbs }: (typeof rows)[number]): void => {
    fill(row, item, say, fileOf);
    thumbs.draw(item, isRated);
  };
  /** True while a reply that is being written has been announced in part. */
  let isTelling = false;
  let isFirst = true;
  const isAtEnd = followEnd(element);

  const announce = (shown: Item[]): void => {
    const last = shown.at(-1);
    // That a colleague has joined is announced by the panel's line that says who answers.
    if (last?.role === "note" && last.key !== "joined" && !isFirst && shown.length > rows.length) {
      announcer.say(noteOf(last, say));
    }
    if (last?.role !== "assistant" || last === WAITING) return;
    const before = rows.at(-1)?.item;
    // A changed rating alone is no new text.
    const isNew = before?.role !== "assistant" || before.text !== last.text
      || before.turn !== last.turn;
    // The initial message may be there before the panel is; it is announced all the same.
    if (isNew && (last.turn !== null || isTelling || !isFirst || shown.length === 1)) {
      isTelling = last.turn !== null;
      announcer.reply(last.text, last.turn === null);
    }
  };
  return {
    element,
    label: () => {
      element.ariaLabel = say("log");
      for (const row of rows) fillRow(row);
    },
    draw: (talk) => {
      const last = talk.items.at(-1);
      const waits = talk.pending !== null && talk.problem === "" && last?.role === "user";
      const shown = waits ? [...talk.items, WAITING] : talk.items;
      const hasWritten = last?.role === "user" && shown.length > rows.length;
      announce(shown);
      isFirst = false;
      isRated = talk.settings?.widget_settings.ratings !== false;
      for (const row of rows.splice(shown.length)) {
        row.element.remove();
        row.thumbs.element.remove();
      }
      shown.forEach((item, index) => {
        let row = rows[index];
        if (!row) {
          row = { item: WAITING, element: make("div", { dir: "auto" }), thumbs: createThumbs(say, rate) };
          rows.push(row);
          element.append(row.element, row.thumbs.element);
        } else if (row.item === item) return;
        row.item = item;
        row.element.className = `item ${classOf(item)}${isPartial(item) ? " partial" : ""}`;
        fillRow(row);
      });
      if (isAtEnd() || hasWritten) element.scrollTop = element.scrollHeight;
    },
  };
}
