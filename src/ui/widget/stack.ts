// Widgets of several assistants that a page has in one corner: their launchers stand one behind the
// other, as they come in the page, away from its edge. Whoever is dressed or taken out asks for it.
// One at a time has the place before them.

export const TAG = "assistant-chat";

/** Another server's copy of the widget may be among them. */
export function stack(): void {
  const corners = new Map<string, HTMLElement[]>();
  for (const { shadowRoot } of document.querySelectorAll(TAG)) {
    const root = shadowRoot?.querySelector<HTMLElement>(".root:not([hidden])");
    if (!root) continue;
    const corner = `${root.dataset.y} ${root.dataset.x}`;
    corners.set(corner, [...corners.get(corner) ?? [], root]);
  }
  for (const roots of corners.values()) {
    roots.forEach(({ style }, at) => {
      style.setProperty("--before", String(at));
      style.setProperty("--others", String(roots.length - 1));
    });
  }
}

/** Whether one of them is seen to greet just now, or to be open: a page may hide some of them. */
export const isTaken = (): boolean => [...document.querySelectorAll(TAG)].some(({ shadowRoot }) =>
  !!shadowRoot?.querySelector(".greeting:not([hidden]), .panel[open]")?.getClientRects().length);
