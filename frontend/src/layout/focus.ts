/** Moves the focus to the parts of the page that shortcuts, menus and panels lead to. */
import { navigate } from "../lib/router";
import { hideSidebarIfNarrow, showSidebar } from "./sidebarVisibility";

/** The address of the temporary conversation. */
export const TEMPORARY_PATH = "temporary";

/** Opens the start page, ready for the first message of a new conversation. */
export function startConversation(): void {
  navigate("");
  hideSidebarIfNarrow();
  requestAnimationFrame(focusComposer);
}

/** Opens the temporary conversation of this tab. */
export function openTemporaryConversation(): void {
  navigate(TEMPORARY_PATH);
  hideSidebarIfNarrow();
  requestAnimationFrame(focusComposer);
}

export function focusComposer(): void {
  document.getElementById("composer")?.focus();
}

/** The composer, on a page that has one. */
export function focusContent(): void {
  (document.getElementById("composer") ?? document.getElementById("main"))?.focus();
}

/** Moves the focus to a field that has just appeared, unless the person is writing elsewhere or has something open. */
export function focusNewField(field: HTMLElement): void {
  const isWriting = document.activeElement?.matches("input, textarea, select") === true;
  const isCovered = document.querySelector("dialog[open], .menu") !== null;
  if (!isWriting && !isCovered) field.focus({ preventScroll: true });
}

/** The id of the search field in the sidebar. */
export const SEARCH_ID = "search";

export function focusSearch(): void {
  showSidebar(true);
  requestAnimationFrame(() => document.getElementById(SEARCH_ID)?.focus());
}
