// Whoever has something unsaved is asked before the address changes. In the first script, though
// unsaved.tsx alone sets the guard: on a window listeners run in their order, and this one has to
// come before the router's.
type Guard = (hash: string) => boolean;

let guard: Guard | null = null;
/** Where people are. The event does not always say it: app.tsx makes some of its own. */
let shown = location.href;

/** What returns true for hashes that must not be gone to; null: all may be. */
export function guardLeaving(next: Guard | null): void {
  guard = next;
  shown = location.href;
}

// Links, the back button and programs all pass here.
addEventListener("hashchange", (event) => {
  if (!guard?.(location.hash)) {
    shown = location.href;
    return;
  }
  event.stopImmediatePropagation();
  history.pushState(null, "", shown);
});
