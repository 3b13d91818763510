// The oldest browsers that pages promise to run in, against a list of what came later. The compiler
// rewrites syntax by itself; functions, and styles that would be lost, are looked for by name. What
// is not in the list is not found: newer things that pages begin to use belong in it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { tokenizer } from "acorn";
import { OLDEST, bundlePage, type BundleName } from "#ui/build.ts";

type Versions = [chrome: number, firefox: number, safari: number];
const NEVER = Infinity;

/** First versions, as MDN's compatibility data had them in November 2026. */
const FUNCTIONS: [RegExp, ...Versions][] = [
  [/\.(at|hasOwn|throwIfAborted|randomUUID|supportedValuesOf|showModal)\(/, 100, 98, 15.4],
  [/\bstructuredClone\(|\bBroadcastChannel\b|\.locks\b/, 98, 96, 15.4],
  [/\.(findLast|findLastIndex)\(/, 97, 104, 15.4],
  [/\.(with|toSorted|toReversed|toSpliced)\(/, 110, 115, 16],
  [/AbortSignal\.timeout\b/, 103, 100, 16],
  [/AbortSignal\.any\b/, 116, 124, 17.4],
  [/\.fromAsync\(/, 121, 115, 16.4],
  [/\.(isWellFormed|toWellFormed)\(/, 111, 119, 16.4],
  [/\b(Decompression|Compression)Stream\b/, 80, 113, 16.4],
  [/\badoptedStyleSheets\b/, 73, 101, 16.4],
  [/\.canParse\(/, 120, 115, 17],
  [/\.(showPopover|hidePopover|togglePopover)\(/, 114, 125, 17],
  [/\.(isSubsetOf|isSupersetOf|isDisjointFrom|symmetricDifference|intersection)\(/, 122, 127, 17],
  [/\.groupBy\(/, 117, 119, 17.4],
  [/\.withResolvers\(/, 119, 121, 17.4],
  [/\.checkVisibility\(/, 105, 106, 17.4],
  [/\bURL\.parse\(/, 126, 126, 18],
  [/\.startViewTransition\(/, 111, 144, 18],
  [/\bPromise\.try\(/, 128, 134, 18.2],
  [/\.(setHTMLUnsafe|parseHTMLUnsafe)\(/, 124, 123, 26],
  [/\.(fromBase64|toBase64|fromHex|toHex)\(/, 140, 133, 18.2],
  [/\bRegExp\.escape\(/, 136, 134, 18.2],
  [/\bIterator\.from\(|\.toArray\(/, 122, 131, 18.4],
  [/\.(values|keys|entries)\(\)\.(map|filter|take|drop|reduce|some|every)\(/, 122, 131, 18.4],
  [/\.(requestClose)\(|\bcommandForElement\b/, 134, 139, 26.2],
  [/\bIntl\.Segmenter\b/, 87, 125, 14.1],
  [/\bIntl\.DurationFormat\b/, 129, 136, 16.4],
  [/\.(aria[A-Z]\w+)=/, 81, 119, 12.1],
  [/\bscrollend\b/, 114, 109, 26.2],
  [/\bTemporal\./, 144, 139, 27.3],
  [/\brequestIdleCallback\b|\bCloseWatcher\b|\bscheduler\.|\.moveBefore\(/, 133, 144, NEVER],
];
/** A rule with one of these falls away, or a value does that the page is not whole without. */
const STYLES: [RegExp, ...Versions][] = [
  [/\d[dsl]v[hw]\b/, 108, 101, 15.4],
  [/:has\(/, 105, 121, 15.4],
  [/@layer\b/, 99, 97, 15.4],
  [/@container\b/, 105, 110, 16],
  [/\bsubgrid\b/, 117, 71, 16],
  [/color-mix\(/, 111, 113, 16.2],
  [/@media[^{]*\(\w+ ?[<>]=?/, 104, 102, 16.4],
  [/:dir\(/, 120, 49, 16.4],
  [/@property\b/, 85, 128, 16.4],
  [/:user-(in)?valid\b/, 119, 88, 16.5],
  [/:popover-open\b/, 114, 125, 17],
  [/@scope\b/, 118, 146, 26.4],
  [/light-dark\(/, 123, 120, 17.5],
  [/@starting-style\b/, 117, 129, 17.5],
  [/anchor-name:|position-area:/, 125, 147, 26],
  [/:open\b|::details-content/, 133, 143, 26.5],
];

/** It does without adopted styles (dress.ts), sentences (announce.ts), the top layer (shell.ts). */
const ASKED_FOR: Record<string, string[]> = {
  "widget.js": ["adoptedStyleSheets", ":popover-open"],
  "widget-chat.js": ["adoptedStyleSheets", "Intl.Segmenter"],
  "widget-call.js": ["adoptedStyleSheets"],
};

const TALK = ["talk.js", "call.js", "hearing.js", "peer.js", "resample.js", "worklet.js", "talk.css"];

function oldestOf(page: string): Versions {
  const found = ["chrome", "firefox", "safari"].map((name) =>
    OLDEST[page]?.find((one) => one.startsWith(name))?.slice(name.length));
  assert.ok(found.every((version) => version !== undefined));
  return found.map(Number) as Versions;
}

/** Look-behind cannot be rewritten; libraries that try it out have it in strings. */
function looksBehind(script: string): string[] {
  const tokens = tokenizer(script, { ecmaVersion: "latest", sourceType: "module" });
  return [...tokens].flatMap((token) => {
    if (token.type.label !== "regexp" || !("value" in token)) return [];
    const { pattern } = token.value as { pattern: string };
    return /\(\?<[=!]/.test(pattern) ? [`${pattern} (look-behind)`] : [];
  });
}

function tooNew(name: string, text: string, [chrome, firefox, safari]: Versions): string[] {
  // The widget's styles are strings of its scripts.
  const kinds = name.endsWith(".css") ? STYLES : [...FUNCTIONS, ...STYLES];
  const found = kinds.flatMap(([pattern, ...first]) =>
    first[0] > chrome || first[1] > firefox || first[2] > safari
      ? pattern.exec(text)?.[0] ?? [] : []);
  const behind = safari < 16.4 && name.endsWith(".js") ? looksBehind(text) : [];
  return [...found, ...behind].filter((one) => ASKED_FOR[name]?.includes(one) !== true)
    .map((one) => `${name}: ${one}`);
}

const plain = async (name: BundleName): Promise<string> =>
  Buffer.from((await bundlePage(name)).plain).toString();

test("[UI130] pages use none of the listed features that their oldest supported browsers lack", async () => {
  const scripts = ["widget.js", "widget-chat.js", "widget-call.js"] as const;
  const found: string[] = [];
  for (const name of scripts) found.push(...tooNew(name, await plain(name), oldestOf("widget")));
  for (const name of TALK) {
    const text = readFileSync(new URL(`../../src/ui/talk/${name}`, import.meta.url), "utf8");
    found.push(...tooNew(name, text, oldestOf("widget")));
  }
  for (const name of ["dashboard.js", "dashboard-shared.js", "dashboard-more.js", "dashboard.css",
    "dashboard-more.css"] as const) {
    found.push(...tooNew(name, await plain(name), oldestOf("dashboard")));
  }
  assert.deepEqual(found, []);
});

test("[UI130] features that are too new are found", () => {
  const found = tooNew("widget.js", "a.toSorted();URL.canParse(b);/(?<!c)d/.test(e)", [108, 121, 16]);
  assert.deepEqual(found,
    ["widget.js: .toSorted(", "widget.js: .canParse(", "widget.js: (?<!c)d (look-behind)"]);
});
