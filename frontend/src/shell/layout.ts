/** Whether the list of conversations is shown beside the page, or above it on a narrow screen. */
import { keep, recall } from "../lib/keep";
import { Store } from "../lib/store";

const NARROW = "(max-width: 800px)";
export const TOGGLE = "sidebar-toggle"; // the button that shows it, or the one that hides it

const narrow = window.matchMedia(NARROW);
const isBeside = () => !narrow.matches && recall("sidebar") !== "hidden";
export const sidebarShown = new Store(isBeside());
export const isNarrow = new Store(narrow.matches);

export function showSidebar(isShown: boolean): void {
  sidebarShown.update(() => isShown);
  if (!narrow.matches) keep("sidebar", isShown ? null : "hidden");
}

/** On a narrow screen the list gives way to what was chosen from it. */
export function giveWay(): void {
  if (narrow.matches) sidebarShown.update(() => false);
}

/** The same by its button, which is gone then; the one that takes it back has the focus. */
export function toggleSidebar(): void {
  showSidebar(!sidebarShown.value);
  requestAnimationFrame(() => document.getElementById(TOGGLE)?.focus());
}

narrow.addEventListener("change", () => {
  isNarrow.update(() => narrow.matches);
  sidebarShown.update(isBeside);
});
