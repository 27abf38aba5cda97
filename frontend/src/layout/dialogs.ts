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

/** A choice among all models of the providers: the name that is chosen now, and what to do with another. */
export interface ModelChoice {
  current: string;
  choose: (model: string) => void;
}

export const modelToChoose = new Store<ModelChoice | null>(null);

export function openModelDialog(choice: ModelChoice): void {
  modelToChoose.update(() => choice);
}

export function closeModelDialog(): void {
  modelToChoose.update(() => null);
}
