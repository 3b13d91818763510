// The chat widget: `<script async src="…/widget.js" data-assistant="uuid">` puts an
// <assistant-chat> into the page. Bundled by build.ts; runs on other people's pages, so it keeps
// to its shadow root, makes no global, and takes nothing from anywhere but the server it is from.
/// <reference lib="dom" />
import { createApi } from "./api.ts";
import { startWidget } from "./controller.ts";
import { dress } from "./dress.ts";
import { readOptions, type Options } from "./options.ts";
import { STYLES } from "./styles.ts";

const TAG = "assistant-chat";

/** A page may embed it twice, or another copy may have come before. */
function define(): void {
  if (customElements.get(TAG)) return;
  customElements.define(TAG, class extends HTMLElement {});
}

function mount(options: Options): void {
  define();
  const host = document.createElement(TAG);
  const shadow = host.attachShadow({ mode: "open" });
  dress(shadow, STYLES);
  startWidget(shadow, options, createApi(options.origin));
  document.body.append(host);
}

function start(): void {
  // Null where the tag was put in by a script of type module.
  const script = document.currentScript instanceof HTMLScriptElement
    ? document.currentScript
    : document.querySelector<HTMLScriptElement>("script[data-assistant], script[data-assistant-id]");
  const options = script && readOptions(script);
  if (!options) return;
  if (document.body) mount(options);
  else document.addEventListener("DOMContentLoaded", () => mount(options), { once: true });
}

start();
