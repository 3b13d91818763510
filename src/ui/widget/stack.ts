// Widgets of several assistants in one corner of a page: their launchers are stacked in document
// order, away from the edge. A widget calls `stack` when it is dressed or taken out of the page.
// The place beside them is free for one greeting or panel at a time (`isTaken`).

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

/** A greeting or an open panel is visible; widgets that the page hides do not count. */
export const isTaken = (): boolean => [...document.querySelectorAll(TAG)].some(({ shadowRoot }) =>
  !!shadowRoot?.querySelector(".greeting:not([hidden]), .panel[open]")?.getClientRects().length);
