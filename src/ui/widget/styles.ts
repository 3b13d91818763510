// The widget's stylesheet as far as a page needs it before the chat is opened (the panel's is in
// panel-styles.ts), adopted by its shadow root, which works even where a page forbids inline
// styles. Colours are custom properties that colour.ts computes; sides are logical, so that
// right-to-left pages are mirrored, except for the corner, which the account chose. The font size
// is the browser's own, whatever the page's is.

const PLACES = `
.launcher, .panel, .greeting { position: fixed; margin: 0; }
[data-x="right"] > * { right: var(--gap); left: auto; }
[data-x="left"] > * { left: var(--gap); right: auto; }
[data-x="center"] > * { left: 50%; right: auto; translate: -50% 0; }
[data-y="bottom"] > * { bottom: var(--gap); top: auto; }
[data-y="top"] > * { top: var(--gap); bottom: auto; }
[data-y="middle"] > * { top: 50%; bottom: auto; translate: 0 -50%; }
[data-y="bottom"] > .launcher { bottom: calc(var(--gap) + var(--before, 0) * var(--step)); }
[data-y="top"] > .launcher { top: calc(var(--gap) + var(--before, 0) * var(--step)); }
[data-y="middle"] > .launcher { top: calc(50% + var(--before, 0) * var(--step)); }
.root:has(> .panel[open]) { z-index: 2147483001; }
`;

// A page's own rules for all elements (`* { … }`, `body > * { … }`) win over `:host` unless it says
// `!important`: none of them may move, cover or fade the fixed parts in here, and nothing is
// inherited. Out of the flow, the host is no item of a body that is a grid. `display` and
// `visibility` are left to pages, which hide the widget with them.
const FRAME = `
:host { all: initial; }
:host {
  position: absolute !important; inset: auto !important; width: 0 !important; height: 0 !important;
  min-width: 0 !important; min-height: 0 !important; padding: 0 !important; border: 0 !important;
  z-index: auto !important; isolation: auto !important;
  transform: none !important; translate: none !important; scale: none !important;
  rotate: none !important; perspective: none !important; filter: none !important;
  backdrop-filter: none !important; contain: none !important; container-type: normal !important;
  content-visibility: visible !important; will-change: auto !important; opacity: 1 !important;
  clip-path: none !important; mask: none !important; mix-blend-mode: normal !important;
}
@media print { .root { display: none !important; } }
.root { all: initial; visibility: inherit; }
.root {
  --gap: 20px; --step: max(72px, 4.5em); --top: initial; --height: initial;
  --past: calc(max(72px, 3em) + var(--others, 0) * var(--step));
  position: fixed; z-index: 2147483000; width: 0; height: 0; color: var(--ink);
  font: medium/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  -webkit-text-size-adjust: 100%;
}
*, *::before { box-sizing: border-box; }
[hidden] { display: none !important; }
button, textarea, input { font: inherit; color: inherit; }
button, a.call, .notice a {
  display: inline-flex; align-items: center; justify-content: center; gap: 8px; flex: none;
  min-width: 44px; min-height: 44px; padding: 0 10px; border: 0; border-radius: 12px;
  background: none; cursor: pointer; text-decoration: none;
}
svg { width: max(22px, 1.1em); height: max(22px, 1.1em); flex: none; }
[dir="rtl"] .mirrored { scale: -1 1; }
:focus-visible { outline: 3px solid var(--strong); outline-offset: 2px; }
header :focus-visible { outline-color: currentColor; outline-offset: -4px; }
.quiet {
  position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap;
}
.launcher {
  min-width: 60px; min-height: 60px; padding: 0 18px; border-radius: 30px;
  border: 2px solid var(--on-accent); background: var(--accent); color: var(--on-accent);
  box-shadow: 0 4px 18px rgb(0 0 0 / 0.3); max-width: calc(100% - 2 * var(--gap));
}
.launcher span { display: grid; text-align: start; line-height: 1.25; font-weight: 600; }
.launcher small { font-size: 0.8125em; font-weight: 400; }
.launcher.unread::after {
  content: attr(data-unread); position: absolute; top: -4px; inset-inline-end: -4px;
  min-width: 24px; padding: 0 4px; border-radius: 12px; background: #c62f37; color: #fff;
  border: 2px solid #fff; font: 600 0.8125em/1.54 system-ui, sans-serif;
}
.greeting {
  display: flex; align-items: center; max-width: min(20em, 100% - 2 * var(--gap));
  border: 1px solid var(--edge); border-radius: 16px; background: var(--card);
  box-shadow: 0 4px 18px rgb(0 0 0 / 0.3);
}
.greeting .words { padding: 10px 14px; text-align: start; flex: 1; }
[data-y="bottom"] > .greeting { bottom: calc(var(--gap) + var(--past)); }
[data-y="top"] > .greeting { top: calc(var(--gap) + var(--past)); }
[data-y="middle"] > .greeting { top: calc(50% + var(--others, 0) * var(--step)); translate: 0 48px; }
@media (forced-colors: active) { .launcher { border: 1px solid; } }
`;

export const STYLES = PLACES + FRAME;
