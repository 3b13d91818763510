// The guides for programs under `/docs`: written as Markdown in docs/guides, and served as pages.
// The browser fills the address into the examples, and the key of readers who are signed in with
// one; the server never sends a key. Mounted by mount.ts.
import { readFileSync } from "node:fs";
import { marked, type Token, type Tokens } from "marked";
import { programFile } from "#core/program.ts";
import { assetOf, assetReply, type Asset } from "#http/asset.ts";
import type { HttpServer } from "#http/server.ts";
import { PAGE_HEADERS } from "./pages.ts";

/** In the order in which somebody new would read them. */
export const GUIDES = {
  "first-reply": "Get a first reply",
  stream: "Stream a reply",
  widget: "Put the widget on a site",
  webhooks: "Receive webhooks",
  call: "Call somebody",
  campaign: "Run a campaign",
  knowledge: "Add knowledge",
  tool: "Give the assistant a tool",
} as const;
const HOME = "README";
type GuideName = keyof typeof GUIDES | typeof HOME;

/** Keyed by the language tags of the examples in the Markdown. */
const LANGUAGES: Record<string, string> = {
  sh: "curl", js: "JavaScript", py: "Python", php: "PHP", html: "HTML", json: "JSON",
};

export const guideText = (name: GuideName): string =>
  readFileSync(programFile(`docs/guides/${name}.md`), "utf8");

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

const example = ({ lang = "", text }: Tokens.Code): string => {
  const label = LANGUAGES[lang] ?? lang;
  return `<div class="example" data-language="${label}"><h3>${label}</h3>`
    + `<pre tabindex="0" aria-label="Example in ${label}"><code>${escaped(text)}\n</code></pre></div>`;
};

/** Consecutive examples are the same one in several languages: the page shows one at a time. */
function htmlOf(markdown: string): string {
  const parts: string[] = [];
  let examples: Tokens.Code[] = [];
  const endExamples = (): void => {
    if (examples.length > 0) parts.push(`<div class="examples">${examples.map(example).join("")}</div>`);
    examples = [];
  };
  const tokens: Token[] = marked.lexer(markdown);
  for (const token of tokens) {
    if (token.type === "code") examples.push(token as Tokens.Code);
    else if (token.type !== "space") {
      endExamples();
      parts.push(marked.parser([token]));
    }
  }
  endExamples();
  return parts.join("\n");
}

function linkTo(name: keyof typeof GUIDES, shown: GuideName): string {
  const current = name === shown ? ' aria-current="page"' : "";
  return `<li><a href="/docs/${name}"${current}>${GUIDES[name]}</a></li>`;
}

function pageOf(name: GuideName): Asset {
  const names = Object.keys(GUIDES) as (keyof typeof GUIDES)[];
  const title = name === HOME ? "For programs" : GUIDES[name];
  const links = names.map((one) => linkTo(one, name)).join("");
  return assetOf(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Parley</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/guides.css">
<script src="/docs/guides.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the guide</a>
<header>
<a class="brand" href="/docs">Parley for programs</a>
<a href="/docs/reference">All requests</a>
<a href="/">Dashboard</a>
</header>
<nav aria-label="Guides"><ul>${links}</ul></nav>
<main id="main" tabindex="-1">
<p id="filled" role="status"></p>
${htmlOf(guideText(name))}
</main>
</body>
</html>
`);
}

export function mountGuides(server: HttpServer): void {
  const serve = (pattern: string, contentType: string, make: () => Asset): void => {
    let asset: Asset | null = null;
    server.route({
      method: "GET", pattern, bodyBytesMax: 0,
      handle: (http) => assetReply(asset ??= make(), contentType, http, PAGE_HEADERS),
    });
  };
  const file = (name: string) => (): Asset => assetOf(readFileSync(programFile(`src/ui/guides/${name}`)));
  serve("/docs", "text/html; charset=utf-8", () => pageOf(HOME));
  for (const name of Object.keys(GUIDES) as (keyof typeof GUIDES)[]) {
    serve(`/docs/${name}`, "text/html; charset=utf-8", () => pageOf(name));
  }
  serve("/docs/guides.css", "text/css; charset=utf-8", file("guides.css"));
  serve("/docs/guides.js", "text/javascript; charset=utf-8", file("guides.js"));
}
