// Light or dark: the system's choice, until the reader makes one. ../theme.js applies it.
import { onDevice } from "./kept.ts";

const KEY = "parley-theme";

const systemTheme = (): "light" | "dark" =>
  matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

export function switchTheme(): void {
  const { dataset } = document.documentElement;
  const next = (dataset.theme ?? systemTheme()) === "dark" ? "light" : "dark";
  dataset.theme = next;
  onDevice.setItem(KEY, next);
}
