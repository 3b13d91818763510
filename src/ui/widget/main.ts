// The chat widget: `<script async src="…/widget.js" data-assistant="uuid">` puts an
// <assistant-chat> into the page. Bundled by build.ts; runs on other people's pages, so it keeps
// to its shadow root, makes no global, and loads nothing except from the server it came from.
/// <reference lib="dom" />
import { createApi } from "./api.ts";
import { startWidget } from "./controller.ts";
import { dress } from "./dress.ts";
import { readOptions, type Options } from "./options.ts";
import { stack, TAG } from "./stack.ts";
import { STYLES } from "./styles.ts";

interface Host extends HTMLElement {
  /** Server and assistant: a page has one chat for each such pair. */
  owner?: string | null;
  /** Called when the element was put into the page, or taken out of it. */
  moved?: () => void;
}

const ownerOf = (options: Options | null): string | null =>
  options && `${options.origin} ${options.assistant}`;

/** The widget of another server may have defined the element before. */
function define(): void {
  if (customElements.get(TAG)) return;
  customElements.define(TAG, class extends HTMLElement implements Host {
    declare moved?: () => void;
    connectedCallback(): void {
      // A clone, as Turbo makes for its cache of pages, is empty and removes itself.
      if (this.moved) this.moved();
      else this.remove();
    }
    disconnectedCallback(): void {
      this.moved?.();
    }
  });
}

function mount(script: HTMLScriptElement, options: Options): void {
  // The tag was taken out again before this script was loaded: no chat is wanted any more.
  if (!script.isConnected) return;
  define();
  const owner = ownerOf(options);
  // Two chats of one assistant would cover each other: the tag that came last counts.
  for (const other of document.querySelectorAll<Host>(TAG)) {
    if (other.owner === owner) other.remove();
  }
  const host: Host = Object.assign(document.createElement(TAG), { owner });
  // Turbo keeps the element when it morphs one page into the next.
  host.dataset.turboPermanent = "";
  const shadow = host.attachShadow({ mode: "open" });
  let running: AbortController | null = null;
  const begin = (): void => {
    if (running) return;
    running = new AbortController();
    // The element may have been in the page before: its old content goes.
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
    // A site that replaces the body keeps the tag in the head, or has one that does not run again
    // on the next page (Astro): the chat goes into the new body.
    if (!host.isConnected && !body.isConnected && isWanted(owner)) document.body.append(host);
    body = document.body;
    if (host.isConnected) begin();
    else end();
  };
  // An element that is moved is taken out and put in at once: its chat goes on.
  host.moved = () => queueMicrotask(settle);
  begin();
  document.body.append(host);
}

/** The widget's script tags, those in shadow trees first. */
const tagsIn = (root: ParentNode): HTMLScriptElement[] => [
  ...[...root.querySelectorAll("*")].flatMap(({ shadowRoot }) => shadowRoot ? tagsIn(shadowRoot) : []),
  ...root.querySelectorAll<HTMLScriptElement>("script[data-assistant], script[data-assistant-id]"),
];

const isWanted = (owner: string | null): boolean =>
  tagsIn(document).some((tag) => ownerOf(readOptions(tag)) === owner);

function isThere(script: HTMLScriptElement): boolean {
  const options = readOptions(script);
  return [...document.querySelectorAll<Host>(TAG)].some(({ owner }) => owner === ownerOf(options));
}

/** Browsers do not say which tag runs if it is in a shadow tree or a module: it is guessed. */
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
