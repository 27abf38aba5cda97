/** Moves the focus to the parts of the page that shortcuts, menus and panels lead to. */
import { navigate } from "../lib/router";
import { hideSidebarIfNarrow, showSidebar } from "./sidebarVisibility";

/** Opens the start page, ready for the first message of a new conversation. */
export function startConversation(): void {
  navigate("");
  hideSidebarIfNarrow();
  requestAnimationFrame(focusComposer);
}

export function focusComposer(): void {
  document.getElementById("composer")?.focus();
}

export function focusSearch(): void {
  showSidebar(true);
  requestAnimationFrame(() => document.getElementById("search")?.focus());
}
