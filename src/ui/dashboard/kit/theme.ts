// Light or dark: the system's choice, until the reader makes one.
import { onDevice } from "./kept.ts";

const KEY = "parley-theme";

const systemTheme = (): "light" | "dark" =>
  matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

export function applyTheme(): void {
  const chosen = onDevice.getItem(KEY);
  if (chosen) document.documentElement.dataset.theme = chosen;
}

export function switchTheme(): void {
  const { dataset } = document.documentElement;
  const next = (dataset.theme ?? systemTheme()) === "dark" ? "light" : "dark";
  dataset.theme = next;
  onDevice.setItem(KEY, next);
}
