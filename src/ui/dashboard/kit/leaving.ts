// Whoever has something unsaved is asked before the address changes. In the first script, though
// unsaved.tsx alone sets the guard: on a window listeners run in their order, and this one has to
// come before the router's.
type Guard = (event: HashChangeEvent) => boolean;

let guard: Guard | null = null;

/** What returns true for addresses that must not be gone to; null: all may be. */
export function guardLeaving(next: Guard | null): void {
  guard = next;
}

// Links, the back button and programs all pass here.
addEventListener("hashchange", (event) => {
  if (!guard?.(event)) return;
  event.stopImmediatePropagation();
  history.pushState(null, "", event.oldURL);
});
