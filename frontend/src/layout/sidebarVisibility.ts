/** Whether the sidebar is shown: beside the page, or above it on a narrow screen. */
import { storage } from "../lib/storage";
import { Store } from "../lib/store";

const NARROW_QUERY = "(max-width: 800px)";
export const TOGGLE_ID = "sidebar-toggle"; // of the button that shows the sidebar or, while it is shown, of the one that hides it

const narrow = window.matchMedia(NARROW_QUERY);
const shouldShowByDefault = () => !narrow.matches && storage.get("sidebar") !== "hidden";
export const isSidebarShown = new Store(shouldShowByDefault());
export const isNarrow = new Store(narrow.matches);

export function showSidebar(isShown: boolean): void {
  isSidebarShown.update(() => isShown);
  if (!narrow.matches) storage.set("sidebar", isShown ? null : "hidden");
}

/** On a narrow screen, hides the sidebar after something was chosen in it. */
export function hideSidebarIfNarrow(): void {
  if (narrow.matches) isSidebarShown.update(() => false);
}

/** For the toggle buttons. The one that was pressed disappears, so the opposite one gets the focus. */
export function toggleSidebar(): void {
  showSidebar(!isSidebarShown.value);
  requestAnimationFrame(() => document.getElementById(TOGGLE_ID)?.focus());
}

narrow.addEventListener("change", () => {
  isNarrow.update(() => narrow.matches);
  isSidebarShown.update(shouldShowByDefault);
});
