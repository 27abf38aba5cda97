/** The dialogs that can be opened from several places. Here is which of them are open; the shell shows them. */
import { PersonalStore } from "../lib/personal";

export const isPaletteOpen = new PersonalStore(false);
export const isShortcutsDialogOpen = new PersonalStore(false);
export const sessionToShare = new PersonalStore<string | null>(null); // null: the share dialog is closed

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

export const modelToChoose = new PersonalStore<ModelChoice | null>(null);

export function openModelDialog(choice: ModelChoice): void {
  modelToChoose.update(() => choice);
}

export function closeModelDialog(): void {
  modelToChoose.update(() => null);
}
