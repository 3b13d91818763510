// Light or dark: as the system says, until somebody chooses.
const KEY = "parley-theme";

const systemTheme = (): "light" | "dark" =>
  matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

export function applyTheme(): void {
  const chosen = localStorage.getItem(KEY);
  if (chosen) document.documentElement.dataset.theme = chosen;
}

export function switchTheme(): void {
  const { dataset } = document.documentElement;
  const next = (dataset.theme ?? systemTheme()) === "dark" ? "light" : "dark";
  dataset.theme = next;
  localStorage.setItem(KEY, next);
}
