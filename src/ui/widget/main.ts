// The chat widget: `<script async src="…/widget.js" data-assistant="uuid">` puts an
// <assistant-chat> into the page. Bundled by build.ts; runs on other people's pages, so it keeps
// to its shadow root, makes no global, and takes nothing from anywhere but the server it is from.
/// <reference lib="dom" />
import { createApi } from "./api.ts";
import { startWidget } from "./controller.ts";
import { dress } from "./dress.ts";
import { readOptions, type Options } from "./options.ts";
import { stack, TAG } from "./stack.ts";
import { STYLES } from "./styles.ts";

interface Host extends HTMLElement {
  /** Server and assistant, of which the page has one chat. */
  owner?: string | null;
  /** It was put into the page, or taken out of it. */
  moved?: () => void;
}

const ownerOf = (options: Options | null): string | null =>
  options && `${options.origin} ${options.assistant}`;

/** Another copy, of another server, may have come before. */
function define(): void {
  if (customElements.get(TAG)) return;
  customElements.define(TAG, class extends HTMLElement implements Host {
    declare moved?: () => void;
    connectedCallback(): void {
      // A copy from the page's cache (Turbo) is an empty clone.
      if (this.moved) this.moved();
      else this.remove();
    }
    disconnectedCallback(): void {
      this.moved?.();
    }
  });
}

function mount(script: HTMLScriptElement, options: Options): void {
  // The tag was taken out again before this was loaded: nobody waits for it any more.
  if (!script.isConnected) return;
  define();
  const owner = ownerOf(options);
  // Two of one assistant would cover each other: the tag that came last is the one that counts.
  for (const other of document.querySelectorAll<Host>(TAG)) {
    if (other.owner === owner) other.remove();
  }
  const host: Host = Object.assign(document.createElement(TAG), { owner });
  // Keeps the element when Turbo morphs one page into the next.
  host.dataset.turboPermanent = "";
  const shadow = host.attachShadow({ mode: "open" });
  let running: AbortController | null = null;
  const begin = (): void => {
    if (running) return;
    running = new AbortController();
    // It was in the page before.
    shadow.replaceChildren();
    if ("adoptedStyleSheets" in shadow) shadow.adoptedStyleSheets = [];
    dress(shadow, STYLES);
    startWidget(shadow, options, createApi(options.origin), running.signal);
  };
  const end = (): void => {
    running?.abort();
    running = null;
    stack();
  };
  let { body } = document;
  const settle = (): void => {
    // Sites that put another body into the page keep the tag that stands in the head.
    if (!host.isConnected && !body.isConnected && script.isConnected) document.body.append(host);
    body = document.body;
    if (host.isConnected) begin();
    else end();
  };
  // What is moved is taken out and put in at once, and goes on.
  host.moved = () => queueMicrotask(settle);
  begin();
  document.body.append(host);
}

/** Those in shadow trees first. */
const tagsIn = (root: ParentNode): HTMLScriptElement[] => [
  ...[...root.querySelectorAll("*")].flatMap(({ shadowRoot }) => shadowRoot ? tagsIn(shadowRoot) : []),
  ...root.querySelectorAll<HTMLScriptElement>("script[data-assistant], script[data-assistant-id]"),
];

function isThere(script: HTMLScriptElement): boolean {
  const options = readOptions(script);
  return [...document.querySelectorAll<Host>(TAG)].some(({ owner }) => owner === ownerOf(options));
}

/** Browsers do not say which tag of a shadow tree, or of type module, it is that runs. */
function ownTag(): HTMLScriptElement | undefined {
  if (document.currentScript instanceof HTMLScriptElement) return document.currentScript;
  const tags = tagsIn(document);
  return tags.find((tag) => !isThere(tag)) ?? tags[0];
}

function start(): void {
  const script = ownTag();
  const options = script && readOptions(script);
  if (!options) return;
  const begin = (): void => {
    if (document.body) mount(script, options);
    else document.addEventListener("DOMContentLoaded", () => mount(script, options), { once: true });
  };
  // Browsers prerender pages that nobody may ever visit.
  if ("prerendering" in document && document.prerendering === true) {
    document.addEventListener("prerenderingchange", begin, { once: true });
  } else begin();
}

start();
