// Keeps the place of people who use the keyboard. When the focused element is removed, moved or
// disabled for a moment, browsers focus nothing: no focus is visible, and screen readers fall
// silent.

/** Null: the pointer was used since, on something that takes no focus. */
let last: Element | null = null;

addEventListener("pointerdown", () => {
  last = null;
}, true);
addEventListener("focusin", ({ target }) => {
  if (target instanceof Element) last = target;
}, true);

/** The record of the outermost removal that took the focused element out. */
function takenOut(from: Node, records: MutationRecord[]): MutationRecord | null {
  let gone = from;
  let found: MutationRecord | null = null;
  for (const record of records) {
    if (![...record.removedNodes].some((node) => node.contains(gone))) continue;
    found = record;
    gone = record.target;
  }
  return found;
}

/** Not a dialog's body, which has neither a role nor a name to be read out; its heading has. */
const PLACES = ":is(main, dialog) :not(.dialog-body)";

const isPlace = (node: Node | null | undefined): node is HTMLElement =>
  node instanceof HTMLElement && node.matches(PLACES)
  && node.checkVisibility() && !node.closest("[aria-hidden=true]");

/** Focuses a place, not a control, which would react to typing. Tab goes on from there. */
function settle(place: HTMLElement): void {
  if (!place.hasAttribute("tabindex")) {
    place.tabIndex = -1;
    place.addEventListener("blur", () => place.removeAttribute("tabindex"), { once: true });
  }
  place.focus({ preventScroll: true });
}

new MutationObserver((records) => {
  if (last === null || document.activeElement !== document.body) return;
  if (last.isConnected) {
    if (last instanceof HTMLElement && !last.matches(":disabled")) last.focus({ preventScroll: true });
    return;
  }
  const record = takenOut(last, records);
  const place = [record?.nextSibling, record?.target].find(isPlace)
    ?? [...document.querySelectorAll<HTMLElement>("dialog:modal > header > h2")].at(-1)
    ?? document.querySelector<HTMLElement>("main h1") ?? document.querySelector("main");
  last = null;
  if (place) settle(place);
}).observe(document.body, { childList: true, subtree: true, attributeFilter: ["disabled"] });
