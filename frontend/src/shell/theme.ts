/** Light, dark, or as the system has it. `theme.js` applies it before the page is drawn. */
import { keep, recall } from "../lib/keep";
import { Store } from "../lib/store";

export type Theme = "system" | "light" | "dark";

export function theme(): Theme {
  const kept = recall("theme");
  return kept === "light" || kept === "dark" ? kept : "system";
}

const system = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => theme() === "dark" || (theme() === "system" && system.matches);

/** Whether the page is dark now, for what cannot leave that to the style sheets. */
export const darkness = new Store(isDark());
system.addEventListener("change", () => darkness.update(isDark));

export function chooseTheme(chosen: Theme): void {
  keep("theme", chosen === "system" ? null : chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  darkness.update(isDark);
}

/** From light to dark and back, whatever holds now. */
export function toggleTheme(): void {
  chooseTheme(isDark() ? "light" : "dark");
}
