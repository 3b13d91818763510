// The panel's stylesheet, adopted beside the launcher's (styles.ts) when the chat is opened.

// Fixed parts have their sizes in percent of the viewport: `vh` ignores a page's own `zoom`.
const FRAME = `
.panel {
  padding: 0; border: 1px solid var(--edge); border-radius: 18px; overflow: hidden;
  width: min(25em, 100% - 2 * var(--gap)); height: min(40em, 100% - 2 * var(--gap));
  max-width: none; max-height: none; background: var(--card); color: var(--ink);
  box-shadow: 0 12px 48px rgb(0 0 0 / 0.28);
}
.panel[open] { display: flex; flex-direction: column; }
@media (max-width: 480px) {
  .panel.panel {
    inset: var(--top, 0) 0 auto; translate: none; width: 100%; height: var(--height, 100%); border: 0;
    border-radius: 0;
  }
}
header {
  display: flex; align-items: center; gap: 4px; padding: 10px 8px; padding-inline-start: 18px;
  background: var(--accent); color: var(--on-accent); border-bottom: 1px solid var(--line);
}
header div { flex: 1; min-width: 0; }
h2, header p { margin: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
h2 { font-size: 1.0625em; line-height: 1.3; font-weight: 650; }
header p { font-size: 0.875em; }
header .call { color: inherit; font-size: 0.9375em; font-weight: 600; }
`;

const TALK = `
.log {
  flex: 1; overflow-y: auto; overscroll-behavior: contain; padding: 16px;
  display: flex; flex-direction: column; gap: 10px; outline-offset: -4px !important;
}
.log > :first-child { margin-top: auto; }
.item { max-width: 86%; padding: 9px 14px; border-radius: 16px; overflow-wrap: anywhere; }
.item.user {
  align-self: flex-end; background: var(--accent); color: var(--on-accent);
  border: 1px solid var(--edge); border-end-end-radius: 4px; white-space: pre-wrap;
}
.item.partial { font-style: italic; }
.item.note { align-self: center; padding: 0; color: var(--soft); font-size: 0.875em; }
.item.assistant { align-self: flex-start; background: var(--paper); border-end-start-radius: 4px; }
.item > * { margin: 0; }
.item > * + * { margin-top: 8px; }
.item > .quiet { margin: -1px; }
.item > .quiet + * { margin-top: 0; }
.item ul, .item ol { padding-inline-start: 22px; }
/* Deeper ones would leave their words no width. */
.item li li li :is(ul, ol) { padding-inline-start: 4px; list-style-position: inside; }
.item a { color: var(--strong); text-decoration: underline; }
.item code { font: 0.875em/1.45 ui-monospace, Consolas, monospace; }
.item pre { overflow-x: auto; white-space: pre; overflow-wrap: normal; }
.item .remark { color: var(--soft); font-size: 0.875em; }
.item.user .remark { color: inherit; font-style: italic; }
.remark.busy::before {
  content: ""; display: inline-block; width: 8px; height: 8px; margin-inline-end: 8px;
  border-radius: 50%; background: var(--strong);
}
@media (prefers-reduced-motion: no-preference) {
  .remark.busy::before { animation: breathe 1.2s ease-in-out infinite alternate; }
  .panel[open] { animation: rise 0.16s ease-out; }
}
@keyframes breathe { from { opacity: 0.3; } }
@keyframes rise { from { opacity: 0; } }
.thumbs { display: flex; gap: 2px; margin-top: -8px; }
.thumbs button { color: var(--soft); padding: 0; }
.thumbs svg { width: max(18px, 0.9em); height: max(18px, 0.9em); }
.thumbs [aria-pressed="true"] { color: var(--strong); background: var(--paper); }
.menu {
  position: absolute; z-index: 1; top: max(60px, 2.4em); inset-inline-end: 12px; display: grid; padding: 6px;
  border: 1px solid var(--edge); border-radius: 12px; background: var(--card);
  box-shadow: 0 6px 24px rgb(0 0 0 / 0.25);
}
.menu button { justify-content: start; }
.menu button:hover { background: var(--paper); }
form.opinion {
  display: grid; gap: 10px; padding: 12px 16px; border-top: 1px solid var(--line);
  padding-bottom: max(12px, env(safe-area-inset-bottom));
}
form.opinion, form.mail { min-height: 0; overflow-y: auto; }
.opinion fieldset { margin: 0; padding: 0; border: 0; }
.opinion legend { padding: 0 0 8px; font-weight: 600; }
.opinion .scores, .opinion .row { display: flex; gap: 8px; }
.opinion label { position: relative; flex: 1; display: grid; cursor: pointer; }
.opinion input { position: absolute; inset: 0; width: 100%; opacity: 0; cursor: pointer; }
.opinion span {
  display: grid; place-items: center; min-height: 44px; border: 1px solid var(--edge);
  border-radius: 12px;
}
.opinion input:checked + span {
  background: var(--strong); color: var(--on-strong); border-color: var(--strong); font-weight: 600;
}
.opinion input:focus-visible + span { outline: 3px solid var(--strong); outline-offset: 2px; }
.notice {
  display: flex; align-items: center; flex-wrap: wrap; gap: 4px 10px; padding: 8px 16px;
  border-top: 1px solid var(--line); font-size: 0.9375em;
}
.desk { border-top: 0; border-bottom: 1px solid var(--line); order: -1; }
header { order: -2; }
.item > b { display: block; font-size: 0.875em; }
.face {
  flex: none; display: grid; place-items: center; width: 32px; height: 32px; overflow: hidden;
  border-radius: 50%; background: var(--card); color: var(--ink); border: 1px solid var(--edge);
  font-size: 13px; font-weight: 650;
}
.face canvas { width: 100%; height: 100%; object-fit: cover; }
.item .file { display: block; margin-top: 6px; color: inherit; overflow-wrap: anywhere; }
.preview canvas { display: block; max-width: 100%; max-height: 160px; border-radius: 8px; }
.chosen { display: flex; flex-wrap: wrap; gap: 6px; padding: 8px 10px; border-top: 1px solid var(--line); }
.chosen button { border: 1px solid var(--edge); max-width: 100%; overflow-wrap: anywhere; }
.clip { flex: none; padding: 0; }
form.mail {
  display: grid; gap: 10px; padding: 12px 16px; border-top: 1px solid var(--line);
}
header, .notice, form.say { flex: none; }
/*
 * In a low window the bars are narrow, so that more than a line is read between them; what is being
 * filled in has all there is, and the log keeps its place without height.
 */
@media (max-height: 24rem) {
  .panel :is(header, .notice) { padding-block: 2px; }
  .panel form.say { padding-top: 5px; }
  .panel .log { padding-block: 6px; }
  .panel:has(form:is(.mail, .opinion):not([hidden])) :is(.desk, form.say) { display: none; }
  .panel:has(form:is(.mail, .opinion):not([hidden])) .log {
    flex: none; height: 0; padding-block: 0; visibility: hidden;
  }
}
.desk.away p { flex-basis: 100%; }
.mail label { display: grid; gap: 4px; font-weight: 600; }
.mail input { font-weight: 400; }
.mail p { margin: 0; }
.mail .row { display: flex; gap: 8px; }
.notice p { flex: 1; min-width: 140px; margin: 0; }
.notice.bad p { color: var(--danger); flex-basis: 100%; }
.notice button, .notice a { border: 1px solid var(--strong); color: var(--strong); font-weight: 600; }
form.say {
  display: flex; align-items: flex-end; gap: 8px; padding: 10px; border-top: 1px solid var(--line);
  padding-bottom: max(10px, env(safe-area-inset-bottom));
}
textarea, input {
  width: 100%; min-height: 44px; padding: 9px 12px; border: 1px solid var(--edge);
  border-radius: 12px; background: var(--card);
}
textarea { max-height: min(8.25em, var(--height, 100vh) / 4); resize: none; field-sizing: content; flex: 1; }
/* Empty, it has no direction but the panel's. */
textarea:placeholder-shown { direction: inherit; }
::placeholder { color: var(--soft); opacity: 1; }
header [aria-disabled="true"] { opacity: 0.55; cursor: default; }
.main { background: var(--strong); color: var(--on-strong); font-weight: 600; }
.main[aria-disabled="true"] { opacity: 0.55; cursor: default; }
form.ask { flex: 1; overflow-y: auto; padding: 18px; display: grid; gap: 14px; align-content: start; }
form.ask h3, form.ask p { margin: 0; }
form.ask h3 { font-size: 1.125em; }
form.ask textarea { min-height: 92px; }
form.ask label { display: grid; gap: 4px; font-weight: 600; }
form.ask input, form.ask textarea { font-weight: 400; }
@media (forced-colors: active) {
  .item { border: 1px solid; }
  .thumbs [aria-pressed="true"], .opinion input:checked + span {
    forced-color-adjust: none; background: Highlight; color: HighlightText;
  }
}
.item blockquote { padding-inline-start: 12px; border-inline-start: 3px solid var(--edge); }
.item blockquote > * { margin: 0; }
.item hr { width: 100%; border: 0; border-top: 1px solid var(--line); }
.item div { overflow-x: auto; }
.item table { border-collapse: collapse; font-size: 0.9375em; }
.item th, .item td {
  padding: 4px 10px; border: 1px solid var(--edge); text-align: start; overflow-wrap: break-word;
}
.item pre { padding: 8px 10px; border-radius: 8px; background: var(--card); }
`;

export const PANEL_STYLES = FRAME + TALK;
