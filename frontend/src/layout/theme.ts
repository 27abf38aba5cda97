/** The theme: light, dark, or the system's. `theme.js` applies it before the page is rendered. */
import { storage } from "../lib/storage";
import { Store } from "../lib/store";

export type Theme = "system" | "light" | "dark";

export function getTheme(): Theme {
  const stored = storage.get("theme");
  return stored === "light" || stored === "dark" ? stored : "system";
}

const system = window.matchMedia("(prefers-color-scheme: dark)");
const computeIsDark = () => getTheme() === "dark" || (getTheme() === "system" && system.matches);

/** Whether the page is dark, for code that cannot leave it to the style sheets. */
export const isDarkTheme = new Store(computeIsDark());
system.addEventListener("change", () => isDarkTheme.update(computeIsDark));

export function setTheme(theme: Theme): void {
  storage.set("theme", theme === "system" ? null : theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  isDarkTheme.update(computeIsDark);
}

export function toggleTheme(): void {
  setTheme(computeIsDark() ? "light" : "dark");
}
