// Asks people with unsaved changes before the address changes. Part of the first script, though
// only unsaved.tsx sets the guard: listeners on a window run in the order they were added, and this
// one must come before the router's.
type Guard = (hash: string) => boolean;

let guard: Guard | null = null;
/** The current address. Events do not always tell it: app.tsx dispatches some of its own. */
let shown = location.href;

/** `next` returns true for hashes that must not be opened; null: all may be. */
export function guardLeaving(next: Guard | null): void {
  guard = next;
  shown = location.href;
}

// Links, the back button and scripts all end up here.
addEventListener("hashchange", (event) => {
  if (!guard?.(location.hash)) {
    shown = location.href;
    return;
  }
  event.stopImmediatePropagation();
  history.pushState(null, "", shown);
});
