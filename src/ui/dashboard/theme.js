// Applies the theme that was chosen in this browser (kit/theme.ts). A script of its own that the
// page waits for: scripts that come later would let the other theme be seen first.
try {
  const chosen = localStorage.getItem("parley-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Where the browser stores nothing, nothing was chosen.
}
