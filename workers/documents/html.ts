// Web pages, and Word documents converted to HTML: readable text with headings, lists and tables.
// One pass of a lenient parser, so that a page's cost is proportional to its length.
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
/** Block elements inside these do not start a new line. */
const LINES = new Set(["td", "th", "li"]);
const HEADING = /^h([1-6])$/;
const VOID = new Set(["br", "hr", "img", "input", "meta", "link", "wbr", "source", "area", "col"]);

interface Page {
  list: BlockList;
  title: string;
  /** As written, in order. */
  links: string[];
}

/** The address a tag leads to; a page may send browsers on by itself. */
function linkOf(name: string, attributes: Record<string, string>): string | undefined {
  if (name === "a" || name === "area") return attributes.href;
  if (name !== "meta" || attributes["http-equiv"]?.toLowerCase() !== "refresh") return undefined;
  return /url\s*=\s*["']?([^"']+)/i.exec(attributes.content ?? "")?.[1];
}

/** Reads into `list`; `url` is noted with every block. Throws Unreadable. */
export function readHtml(html: string, list = new BlockList(), url?: string): Page {
  if (html.length > HTML_CHARS_MAX) throw new Unreadable("The page is too large to read.");
  const reader = new Reader(list, url);
  const parser = new Parser({
    onopentag: (name, attributes) => reader.open(name, attributes),
    ontext: (part) => reader.text(part),
    onclosetag: (name) => reader.close(name),
  }, { decodeEntities: true });
  parser.write(html);
  parser.end();
  return reader.page();
}

class Reader {
  readonly #list: BlockList;
  readonly #place: { url?: string };
  readonly #links: string[] = [];
  #title = "";
  #text = "";
  #base = "";
  #depth = 0;
  /** The depth at which skipping began; 0 while not skipping. */
  #skippedFrom = 0;
  /** How many cells and list items the text is in. */
  #lines = 0;
  /** Only white space has come since the last line break. */
  #atLineStart = true;
  #inTitle = false;
  #inPre = false;
  #heading: { level: number; text: string } | null = null;

  constructor(list: BlockList, url: string | undefined) {
    this.#list = list;
    this.#place = url === undefined ? {} : { url };
  }

  page(): Page {
    this.#flush();
    // A base without a host, as `/`, is itself relative to the page.
    const base = URL.parse(this.#base, this.#place.url);
    const links = this.#base === "" || !base ? this.#links : this.#links.map((link) =>
      URL.parse(link, base)?.href ?? link);
    return { list: this.#list, title: this.#title.replaceAll(/\s+/g, " ").trim(), links };
  }

  open(name: string, attributes: Record<string, string>): void {
    if (!VOID.has(name)) this.#depth += 1;
    if (this.#depth > DEPTH_MAX) throw new Unreadable("The page is nested too deeply to read.");
    if (name === "title" && this.#title === "") this.#inTitle = true;
    if (name === "base" && attributes.href) this.#base = attributes.href;
    const link = linkOf(name, attributes);
    if (link) this.#links.push(link);
    // Menus are not read as text, but their links lead to the other pages.
    if (this.#skippedFrom > 0) return;
    const isHidden = "hidden" in attributes || attributes["aria-hidden"] === "true";
    if (SKIPPED.has(name) || (isHidden && !VOID.has(name))) this.#skippedFrom = this.#depth;
    else this.#begin(name);
  }

  text(part: string): void {
    if (this.#inTitle) this.#title += part;
    if (this.#skippedFrom > 0) return;
    if (this.#heading) {
      this.#heading.text += part;
      return;
    }
    this.#text += this.#inPre ? part : part.replaceAll(/\s+/g, " ");
    if (part.trim() !== "") this.#atLineStart = false;
  }

  close(name: string): void {
    if (name === "title") this.#inTitle = false;
    if (!VOID.has(name)) this.#depth -= 1;
    if (this.#skippedFrom > 0) {
      if (this.#depth < this.#skippedFrom) this.#skippedFrom = 0;
      return;
    }
    if (this.#heading && HEADING.test(name)) {
      this.#list.heading(this.#heading.level, this.#heading.text, this.#place);
      this.#heading = null;
    } else if (BLOCKS.has(name)) this.#breakBlock();
    if (LINES.has(name)) this.#lines = Math.max(0, this.#lines - 1);
    if (name === "pre") this.#inPre = false;
  }

  #begin(name: string): void {
    const level = HEADING.exec(name)?.[1];
    if (level && this.#lines === 0) {
      this.#flush();
      this.#heading = { level: Number(level), text: "" };
    } else if (level || BLOCKS.has(name)) this.#breakBlock();
    if (LINES.has(name)) this.#lines += 1;
    if (name === "pre") this.#inPre = true;
    else if (name === "br" || name === "tr") this.#breakLine("\n");
    else if (name === "li") this.#breakLine("\n- ");
    else if ((name === "td" || name === "th") && !this.#atLineStart) this.#text += " | ";
  }

  #breakLine(mark: string): void {
    this.#text += mark;
    this.#atLineStart = true;
  }

  #breakBlock(): void {
    if (this.#lines === 0) this.#flush();
    else this.#text += " ";
  }

  #flush(): void {
    const clean = this.#inPre
      ? this.#text
      : this.#text.split("\n").map((line) => line.replaceAll(/[^\S\n]+/g, " ").trim()).join("\n");
    this.#list.text(clean.replaceAll(/\n{2,}/g, "\n"), this.#place);
    this.#text = "";
    this.#atLineStart = true;
  }
}
