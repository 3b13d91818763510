// The messages. Draws only those that changed, stays at the newest unless somebody scrolled away,
// and has new replies announced in whole sentences, not in the pieces they arrive in.
import type { Announcer } from "./announce.ts";
import { make } from "./elements.ts";
import { renderMarkdown } from "./markdown.ts";
import type { Item, Talk } from "./store.ts";
import type { Say } from "./texts.ts";

/** Nearer than this to the end counts as the end. */
const END_PX = 40;

function remark(text: string, isBusy = false): HTMLElement {
  return make("p", { class: isBusy ? "remark busy" : "remark" }, text);
}

const spoken = (name: string): string => name.replaceAll(/[_-]+/g, " ");

const speakerOf = (item: Item): string => (item.role === "spoken" ? item.by : item.role);
const isPartial = (item: Item): boolean => item.role === "spoken" && !item.isFinal;

function fill(element: HTMLElement, item: Item, say: Say): void {
  if (item.role === "note") return element.replaceChildren(say(item.key, { name: item.name ?? "" }));
  const isUser = speakerOf(item) === "user";
  const author = item.role === "assistant" ? item.author : undefined;
  const who = author === undefined
    ? make("span", { class: "quiet" }, `${say(isUser ? "you" : "assistant")}: `)
    : make("b", {}, author);
  if (item.role === "user" && item.isLost) {
    return element.replaceChildren(who, item.text, remark(say("not_sent")));
  }
  if (item.role !== "assistant") return element.replaceChildren(who, item.text);
  const atWork = [...new Set(Object.values(item.tools))];
  const remarks = atWork.map((name) => remark(say("using", { name: spoken(name) }), true));
  if (item.turn !== null && item.text === "" && atWork.length === 0) {
    remarks.push(remark(say("writing"), true));
  }
  if (item.wasStopped) remarks.push(remark(say("stopped")));
  element.replaceChildren(who, ...renderMarkdown(item.text, item.turn === null, say), ...remarks);
}

interface Log {
  element: HTMLElement;
  draw(talk: Talk): void;
  /** In words of another language. */
  label(): void;
}

/** The reply that has not begun to arrive. */
const WAITING: Item = { role: "assistant", text: "", turn: 0, wasStopped: false, tools: {} };

export function createLog(announcer: Announcer, say: Say): Log {
  const element = make("div", {
    // Read as a log, but announced by the region of its own, which gets sentences.
    class: "log", role: "log", "aria-live": "off", tabindex: "0",
  });
  const rows: { item: Item; element: HTMLElement }[] = [];
  /** Text of the last reply that was announced in part; null: none is under way. */
  let isTelling = false;
  let isFirst = true;

  const announce = (shown: Item[]): void => {
    const last = shown.at(-1);
    if (last?.role !== "assistant" || last === WAITING) return;
    const isNew = rows.at(-1)?.item !== last;
    if (isNew && (last.turn !== null || isTelling || !isFirst)) {
      isTelling = last.turn !== null;
      announcer.reply(last.text, last.turn === null);
    }
  };
  return {
    element,
    label: () => {
      element.ariaLabel = say("log");
      for (const row of rows) fill(row.element, row.item, say);
    },
    draw: (talk) => {
      const last = talk.items.at(-1);
      const waits = talk.pending !== null && talk.problem === "" && last?.role === "user";
      const shown = waits ? [...talk.items, WAITING] : talk.items;
      const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < END_PX;
      announce(shown);
      isFirst = false;
      for (const row of rows.splice(shown.length)) row.element.remove();
      for (const [index, item] of shown.entries()) {
        let row = rows[index];
        if (!row) {
          row = { item: WAITING, element: make("div", { dir: "auto" }) };
          rows.push(row);
          element.append(row.element);
        } else if (row.item === item) continue;
        row.item = item;
        row.element.className = `item ${speakerOf(item)}${isPartial(item) ? " partial" : ""}`;
        fill(row.element, item, say);
      }
      if (isAtEnd || last?.role === "user") element.scrollTop = element.scrollHeight;
    },
  };
}
