// A reply is announced to screen readers while it is written: whole sentences, each once.
import { plainText } from "./markdown.ts";

const LINES_MAX = 12;
/** Orca ignores an announcement whose text Chromium has just reported of the log; this differs. */
const UNLIKE_THE_LOG = "\u00a0";

export interface Announcer {
  /** Takes the reply so far; with `isComplete`, last words without a full stop are said too. */
  reply(text: string, isComplete: boolean): void;
  say(text: string): void;
}

function sentences(text: string): string[] {
  // Firefox has Segmenter only since 2024: without it, lines are read, each once it is whole.
  if (!("Segmenter" in Intl)) return text.match(/[^\n]*\n|[^\n]+/g) ?? [];
  const segments = new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text);
  const found: string[] = [];
  for (const { segment } of segments) {
    // The number of a list's item ends no sentence.
    if (/^\s*\d+[.)]\s*$/.test(found.at(-1) ?? "")) found.push((found.pop() ?? "") + segment);
    else found.push(segment);
  }
  return found;
}

export function createAnnouncer(region: HTMLElement): Announcer {
  let announced = 0;
  const say = (text: string): void => {
    const line = document.createElement("p");
    const words = text.trim();
    if (words === "") return;
    line.textContent = words + UNLIKE_THE_LOG;
    region.append(line);
    // Old lines have been read out; a screen reader that walks the page finds them in the log.
    while (region.childElementCount > LINES_MAX) region.firstElementChild?.remove();
  };
  return {
    say,
    reply: (text, isComplete) => {
      const all = sentences(text.slice(announced));
      const whole = (isComplete ? all : all.slice(0, -1)).join("");
      announced = isComplete ? 0 : announced + whole.length;
      say(plainText(whole));
    },
  };
}
