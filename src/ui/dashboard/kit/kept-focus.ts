// Whoever works by keyboard stays where they were. Browsers give the focus to nothing when what had
// it goes, moves or is disabled for a moment: nothing shows where one is, and readers fall silent.

/** Null: the pointer was used since, on something that takes no focus. */
let last: Element | null = null;

addEventListener("pointerdown", () => {
  last = null;
}, true);
addEventListener("focusin", ({ target }) => {
  if (target instanceof Element) last = target;
}, true);

/** What was taken out that had it, the outermost of what is said. */
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

/** All of a dialog has neither role nor name to be read out: its heading does. */
const PLACES = ":is(main, dialog) :not(.dialog-body)";

const isPlace = (node: Node | null | undefined): node is HTMLElement =>
  node instanceof HTMLElement && node.matches(PLACES)
  && node.checkVisibility() && !node.closest("[aria-hidden=true]");

/** Not a control: what is being typed would press it. From here Tab goes to the next one. */
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
