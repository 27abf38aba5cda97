/** The dialogs that can be opened from several places. Here is which of them are open; the shell shows them. */
import { Store } from "../lib/store";

export const isPaletteOpen = new Store(false);
export const isShortcutsDialogOpen = new Store(false);
export const sessionToShare = new Store<string | null>(null); // null: the share dialog is closed

export function openPalette(): void {
  isPaletteOpen.update(() => true);
}

export function closePalette(): void {
  isPaletteOpen.update(() => false);
}

export function openShortcutsDialog(): void {
  isShortcutsDialogOpen.update(() => true);
}

export function closeShortcutsDialog(): void {
  isShortcutsDialogOpen.update(() => false);
}

export function openShareDialog(sessionId: string): void {
  sessionToShare.update(() => sessionId);
}

export function closeShareDialog(): void {
  sessionToShare.update(() => null);
}
