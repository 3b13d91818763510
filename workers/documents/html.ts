// Web pages and what Word documents become: readable text with headings, lists and tables. One pass
// of a forgiving parser, so that no page costs more than its length.
import { Parser } from "htmlparser2";
import { BlockList, Unreadable } from "./blocks.ts";

const HTML_CHARS_MAX = 8 * 1024 * 1024;
const DEPTH_MAX = 500;

const SKIPPED = new Set([
  "script", "style", "noscript", "template", "svg", "math", "nav", "footer", "aside", "form", "iframe",
  "object", "select", "button", "dialog", "head", "canvas", "audio", "video",
]);
const BLOCKS = new Set([
  "p", "div", "section", "article", "main", "header", "ul", "ol", "dl", "table", "blockquote", "pre",
  "figure", "figcaption", "address", "details", "summary", "hr", "body", "dt", "dd",
]);
const HEADING = /^h([1-6])$/;
const VOID = new Set(["br", "hr", "img", "input", "meta", "link", "wbr", "source", "area", "col"]);

export interface Page {
  list: BlockList;
  title: string;
  /** As written, in order. */
  links: string[];
}

/** Reads into `list`; `url` is noted with every block. */
export function readHtml(html: string, list = new BlockList(), url?: string): Page {
  if (html.length > HTML_CHARS_MAX) throw new Unreadable("The page is too large to read.");
  const place = url === undefined ? {} : { url };
  const links: string[] = [];
  let title = "";
  let text = "";
  let depth = 0;
  /** Depth at which skipping began; 0 while reading. */
  let skippedFrom = 0;
  let inTitle = false;
  let inPre = false;
  let heading: { level: number; text: string } | null = null;
  let base = "";

  const flush = (): void => {
    const clean = inPre
      ? text
      : text.split("\n").map((line) => line.replaceAll(/[^\S\n]+/g, " ").trim()).join("\n");
    list.text(clean.replaceAll(/\n{2,}/g, "\n"), place);
    text = "";
  };
  const open = (name: string, attributes: Record<string, string>): void => {
    const level = HEADING.exec(name)?.[1];
    if (level) {
      flush();
      heading = { level: Number(level), text: "" };
    } else if (BLOCKS.has(name)) flush();
    if (name === "pre") inPre = true;
    else if (name === "br" || name === "tr") text += "\n";
    else if (name === "li") text += "\n- ";
    else if ((name === "td" || name === "th") && !/(^|\n)\s*$/.test(text)) text += " | ";
    else if (name === "a" && attributes.href) links.push(attributes.href);
  };
  const parser = new Parser({
    onopentag: (name, attributes) => {
      if (!VOID.has(name)) depth += 1;
      if (depth > DEPTH_MAX) throw new Unreadable("The page is nested too deeply to read.");
      if (name === "title" && title === "") inTitle = true;
      if (name === "base" && attributes.href) base = attributes.href;
      if (skippedFrom > 0) return;
      const isHidden = "hidden" in attributes || attributes["aria-hidden"] === "true";
      if (SKIPPED.has(name) || (isHidden && !VOID.has(name))) skippedFrom = depth;
      else open(name, attributes);
    },
    ontext: (part) => {
      if (inTitle) title += part;
      if (skippedFrom > 0) return;
      if (heading) heading.text += part;
      else text += inPre ? part : part.replaceAll(/\s+/g, " ");
    },
    onclosetag: (name) => {
      if (name === "title") inTitle = false;
      if (!VOID.has(name)) depth -= 1;
      if (skippedFrom > 0) {
        if (depth < skippedFrom) skippedFrom = 0;
        return;
      }
      if (heading && HEADING.test(name)) {
        list.heading(heading.level, heading.text);
        heading = null;
      } else if (BLOCKS.has(name)) flush();
      if (name === "pre") inPre = false;
    },
  }, { decodeEntities: true });
  parser.write(html);
  parser.end();
  flush();
  const resolved = base === "" ? links : links.map((link) =>
    (URL.canParse(link, base) ? new URL(link, base).href : link));
  return { list, title: title.replaceAll(/\s+/g, " ").trim(), links: resolved };
}
