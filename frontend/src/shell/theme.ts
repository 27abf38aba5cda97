/** Light, dark, or as the system has it. `theme.js` applies it before the page is drawn. */
import { keep, recall } from "../lib/keep";

export type Theme = "system" | "light" | "dark";

export function theme(): Theme {
  const kept = recall("theme");
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function chooseTheme(chosen: Theme): void {
  keep("theme", chosen === "system" ? null : chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** From light to dark and back, whatever holds now. */
export function toggleTheme(): void {
  const isDark =
    theme() === "dark" || (theme() === "system" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  chooseTheme(isDark ? "light" : "dark");
}
