/** Whether the list of conversations is shown beside the page, or above it on a narrow screen. */
import { keep, recall } from "../lib/keep";
import { Store } from "../lib/store";

const NARROW = "(max-width: 800px)";

const narrow = window.matchMedia(NARROW);
export const sidebarShown = new Store(!narrow.matches && recall("sidebar") !== "hidden");

export function showSidebar(isShown: boolean): void {
  sidebarShown.update(() => isShown);
  if (!narrow.matches) keep("sidebar", isShown ? null : "hidden");
}

/** On a narrow screen the list gives way to what was chosen from it. */
export function giveWay(): void {
  if (narrow.matches) sidebarShown.update(() => false);
}

narrow.addEventListener("change", () => sidebarShown.update(() => !narrow.matches));
