// Renders the Markdown of replies as DOM nodes. The library (marked) parses it; each token becomes
// one of a few elements, text only ever a text node, so that markup in it is shown and never run.
// The result is sanitised once more before it is shown. A reply that is still being written is
// parsed as if its last mark were closed (remend), so that half a link never flashes.
import DOMPurify from "dompurify";
import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import remend from "remend";
import { make } from "./elements.ts";
import type { Say } from "./texts.ts";

const PROTOCOLS = new Set(["http:", "https:", "mailto:", "tel:"]);
/** Longer texts are shown as they are: marks nested by the thousand take long to parse. */
const TEXT_CHARS_MAX = 30_000;
/** The same for one paragraph. */
const INLINE_CHARS_MAX = 2000;
/** Sensible text nests no deeper than a list in a quote in a list. */
const DEPTH_MAX = 12;

const FENCE = {
  IN_PLACE: true,
  ALLOWED_TAGS: [
    "div", "p", "br", "a", "strong", "em", "s", "code", "pre", "ul", "ol", "li", "blockquote", "hr",
    "table", "thead", "tbody", "tr", "th", "td",
  ],
  ALLOWED_ATTR: ["href", "rel", "target", "start", "dir", "role", "tabindex", "aria-label", "scope"],
  // Otherwise their values are checked as URIs.
  ADD_URI_SAFE_ATTR: ["rel", "target", "start", "tabindex", "dir", "scope"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto|tel):/i,
  // No HTML is parsed here, so pages that enforce Trusted Types need to allow no policy for it.
  TRUSTED_TYPES_POLICY: {
    createHTML: (html: string) => html, createScriptURL: (url: string) => url,
  } as unknown as TrustedTypePolicyLike,
};
type TrustedTypePolicyLike = NonNullable<
  NonNullable<Parameters<typeof DOMPurify.sanitize>[1]>["TRUSTED_TYPES_POLICY"]>;

type Nodes = (Node | string)[];

/** Entities that the library puts into text that is no HTML. */
const ENTITIES: Record<string, string> =
  { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };
const unescaped = (text: string): string =>
  text.replaceAll(/&(amp|lt|gt|quot|#39|nbsp);/g, (whole, name: string) => ENTITIES[name] ?? whole);

function addressOf(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function link(address: string, children: Nodes): Nodes {
  const text = unescaped(address);
  const url = addressOf(text);
  if (!url || !PROTOCOLS.has(url.protocol)) return children;
  const to = { href: url.href, target: "_blank", rel: "noopener noreferrer" };
  return [make("a", to, ...children)];
}

function inline(tokens: Token[] | undefined, depth: number): Nodes {
  if (depth > DEPTH_MAX) return (tokens ?? []).map(({ raw }) => raw);
  const within = (token: { tokens?: Token[] }): Nodes => inline(token.tokens, depth + 1);
  return (tokens ?? []).flatMap((given): Nodes => {
    const token = given as MarkedToken;
    switch (token.type) {
      case "text": return token.tokens ? within(token) : [unescaped(token.text)];
      case "escape": return [unescaped(token.text)];
      case "strong": return [make("strong", {}, ...within(token))];
      case "em": return [make("em", {}, ...within(token))];
      case "del": return [make("s", {}, ...within(token))];
      case "codespan": return [make("code", {}, token.text)];
      case "br": return [make("br")];
      case "link": return link(token.href, within(token));
      // Loading a picture could tell a third party who reads it: it becomes a link to click.
      case "image": return link(token.href, [token.text || token.href]);
      default: return [token.raw];
    }
  });
}

const box = (say: Say, name: "code" | "table"): Record<string, string> =>
  // The box scrolls sideways, with the keyboard too.
  ({ tabindex: "0", role: "group", "aria-label": say(name) });

function table({ header, rows }: Tokens.Table, say: Say): HTMLElement {
  const cell = (name: "th" | "td", { tokens }: Tokens.TableCell): HTMLElement =>
    make(name, { dir: "auto", ...(name === "th" ? { scope: "col" } : {}) }, ...inline(tokens, 0));
  return make("div", box(say, "table"), make("table", {},
    make("thead", {}, make("tr", {}, ...header.map((one) => cell("th", one)))),
    make("tbody", {}, ...rows.map((row) =>
      make("tr", {}, ...row.map((one) => cell("td", one)))))));
}

/** The text as it was written, marks included. */
const plain = (text: string): HTMLElement => make("p", {}, ...text.split("\n")
  .flatMap((line, at): Nodes => (at === 0 ? [line] : [make("br"), line])));

function blocks(tokens: Token[], say: Say, depth = 0): HTMLElement[] {
  if (depth > DEPTH_MAX) return tokens.map(({ raw }) => plain(raw));
  return tokens.flatMap((given): HTMLElement[] => {
    const token = given as MarkedToken;
    switch (token.type) {
      case "space": case "def": return [];
      case "hr": return [make("hr")];
      case "code":
        return [make("pre", box(say, "code"), make("code", {}, token.text))];
      case "heading": return [make("p", {}, make("strong", {}, ...inline(token.tokens, 0)))];
      case "blockquote":
        return [make("blockquote", {}, ...blocks(token.tokens, say, depth + 1))];
      case "list": return [list(token, say, depth)];
      case "table": return [table(token, say)];
      case "paragraph": case "text": return [make("p", {}, ...inline(token.tokens, 0))];
      default: return [plain(token.raw.trim())];
    }
  });
}

function list({ ordered, start, items }: Tokens.List, say: Say, depth: number): HTMLElement {
  return make(ordered ? "ol" : "ul", ordered ? { start: String(start) } : {}, ...items.map((item) => {
    const box = item.task ? [item.checked ? "☑ " : "☐ "] : [];
    return make("li", {}, ...box, ...item.tokens.flatMap((token): Nodes =>
      // The words of an item stand beside its mark, not in a paragraph of their own.
      token.type === "text" ? inline((token as Tokens.Text).tokens, 0)
        : token.type === "checkbox" ? []
        : blocks([token], say, depth + 1)));
  }));
}

/** Parses as the library does, but leaves paragraphs plain whose marks would take too long. */
function read(text: string): Token[] {
  const lexer = new Lexer({ gfm: true, breaks: true });
  lexer.blockTokens(text.replaceAll(/\r\n|\r/g, "\n"), lexer.tokens);
  for (const { src, tokens } of lexer.inlineQueue) {
    if (src.length <= INLINE_CHARS_MAX) lexer.inlineTokens(src, tokens);
    else tokens.push({ type: "text", raw: src, text: src } as Token);
  }
  return lexer.tokens;
}

export function renderMarkdown(text: string, isWhole: boolean, say: Say): HTMLElement[] {
  const element = make("div");
  if (text.length > TEXT_CHARS_MAX) element.append(plain(text));
  else {
    const whole = isWhole ? text
      : remend(text, { linkMode: "text-only", katex: false, htmlTags: false });
    try {
      element.append(...blocks(read(whole), say));
    } catch (error) {
      // Quotes nested by the thousand overflow the stack.
      if (!(error instanceof RangeError)) throw error;
      element.replaceChildren(plain(text));
    }
  }
  DOMPurify.sanitize(element, FENCE);
  const made = [...element.children] as HTMLElement[];
  for (const one of made) one.dir = "auto";
  return made;
}

/** A table's row without its lines, with a pause between cells. */
const cellsOf = (row: string): string =>
  row.split("|").map((cell) => cell.trim()).filter((cell) => cell !== "").join(", ");

/** What is read aloud: the words without their marks. */
export function plainText(text: string): string {
  return text
    // The lines around code, below a table's head and across the page say nothing.
    .replace(/^ *(```|~~~).*$|^[ |:]*-[ |:-]*$/gm, "")
    .replace(/^ *\|.*\|[ \t]*$/gm, cellsOf)
    .replace(/^ {0,3}(> ?)+/gm, "")
    .replaceAll("~~", "")
    .replace(/!?\[([^[\]\n]+)\]\([^()\s]+\)/g, "$1")
    .replace(/^\s{0,3}(#{1,6}|[-*+])\s+/gm, "")
    // The character before is captured and put back: Safari of 2022 has no lookbehind.
    .replace(/(^|[^\p{L}\p{N}])_+/gu, "$1")
    .replace(/[*`]|_(?![\p{L}\p{N}])/gu, "");
}
