// Markdown of replies as DOM nodes: paragraphs, lists, code, bold, italic and links, and nothing
// else. Text only ever becomes a text node, so markup in it is shown, never run.

const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);
/** Bold in a link in a list is as deep as sensible text goes. */
const DEPTH_MAX = 4;

// No alternative repeats what contains a repetition: no text takes long.
const INLINE = new RegExp([
  "`(?<code>[^`\\n]+)`",
  "\\*\\*(?=\\S)(?<bold>[^\\n]+?)\\*\\*",
  "(?<![\\p{L}\\p{N}_])__(?=\\S)(?<strong>[^\\n]+?)__(?![\\p{L}\\p{N}_])",
  "\\*(?=[^\\s*])(?<italic>[^*\\n]+)\\*",
  "(?<![\\p{L}\\p{N}_])_(?=[^\\s_])(?<slanted>[^_\\n]+)_(?![\\p{L}\\p{N}_])",
  "!?\\[(?<label>[^[\\]\\n]+)\\]\\((?<target>[^()\\s]+)\\)",
  "(?<address>https?:\\/\\/[^\\s<>\"'`*]+)",
  "\\\\(?<escaped>[\\\\`*_[\\]()#+.!-])",
].join("|"), "gu");

function element(name: string, ...children: (Node | string)[]): HTMLElement {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

function safeAddress(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, href } = new URL(text);
  return PROTOCOLS.has(protocol) ? href : null;
}

function link(address: string, children: (Node | string)[]): (Node | string)[] {
  const href = safeAddress(address);
  if (href === null) return children;
  const anchor = element("a", ...children) as HTMLAnchorElement;
  anchor.href = href;
  anchor.target = "_blank";
  anchor.rel = "noopener noreferrer";
  return [anchor];
}

function inline(text: string, depth = 0): (Node | string)[] {
  if (depth >= DEPTH_MAX) return [text];
  const nodes: (Node | string)[] = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    nodes.push(text.slice(from, match.index));
    from = match.index + match[0].length;
    const { code, bold, strong, italic, slanted, label, target, address, escaped } =
      match.groups ?? {};
    const heavy = bold ?? strong;
    const light = italic ?? slanted;
    if (code !== undefined) nodes.push(element("code", code));
    else if (heavy !== undefined) nodes.push(element("strong", ...inline(heavy, depth + 1)));
    else if (light !== undefined) nodes.push(element("em", ...inline(light, depth + 1)));
    else if (label !== undefined) {
      // A link in a link is no link.
      nodes.push(...link(target ?? "", inline(label, DEPTH_MAX)));
    } else if (address !== undefined) {
      const bare = address.replace(/[.,;:!?)\]]+$/, "");
      nodes.push(...link(bare, [bare]), address.slice(bare.length));
    } else nodes.push(escaped ?? "");
  }
  nodes.push(text.slice(from));
  return nodes.filter((node) => node !== "");
}

const FENCE = /^\s{0,3}```/;
const BULLET = /^\s{0,6}[-*+]\s+(.*)$/;
const NUMBERED = /^\s{0,6}(\d{1,9})[.)]\s+(.*)$/;
const HEADING = /^#{1,6}\s+(.*)$/;

function lines(texts: string[]): (Node | string)[] {
  return texts.flatMap((text, at) => (at === 0 ? inline(text) : [element("br"), ...inline(text)]));
}

/** It scrolls sideways, also by keyboard. */
function code(text: string): HTMLElement {
  const made = element("pre", element("code", text));
  made.tabIndex = 0;
  made.setAttribute("role", "group");
  made.ariaLabel = "Code";
  return made;
}

/** Takes the lines of one block off the front. */
function block(rest: string[]): HTMLElement {
  const first = rest.shift() ?? "";
  if (FENCE.test(first)) {
    const end = rest.findIndex((line) => FENCE.test(line));
    // A reply still being written has not closed its fence yet.
    const body = rest.splice(0, end < 0 ? rest.length : end + 1);
    return code((end < 0 ? body : body.slice(0, -1)).join("\n"));
  }
  const heading = HEADING.exec(first)?.[1];
  if (heading !== undefined) return element("p", element("strong", ...inline(heading)));
  for (const [name, pattern] of [["ul", BULLET], ["ol", NUMBERED]] as const) {
    const match = pattern.exec(first);
    if (!match) continue;
    const list = element(name, element("li", ...inline(match.at(-1) ?? "")));
    if (list instanceof HTMLOListElement) list.start = Number(match[1]);
    for (let next = pattern.exec(rest[0] ?? ""); next; next = pattern.exec(rest[0] ?? "")) {
      rest.shift();
      list.append(element("li", ...inline(next.at(-1) ?? "")));
    }
    return list;
  }
  const paragraph = [first];
  const ends = [/^\s*$/, FENCE, HEADING, BULLET, NUMBERED];
  while (rest[0] !== undefined && !ends.some((pattern) => pattern.test(rest[0] ?? ""))) {
    paragraph.push(rest.shift() ?? "");
  }
  return element("p", ...lines(paragraph));
}

export function renderMarkdown(text: string): HTMLElement[] {
  const rest = text.split(/\r?\n/);
  const blocks: HTMLElement[] = [];
  while (rest.length > 0) {
    if ((rest[0] ?? "").trim() === "") rest.shift();
    else {
      const made = block(rest);
      made.dir = "auto";
      blocks.push(made);
    }
  }
  return blocks;
}

/** What is read aloud: the words without their marks. */
export function plainText(text: string): string {
  return text
    .replace(/!?\[([^[\]\n]+)\]\([^()\s]+\)/g, "$1")
    .replace(/^\s{0,3}(#{1,6}|[-*+])\s+/gm, "")
    .replace(/[*`]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, "");
}
