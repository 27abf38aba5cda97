/** Which import the dialog shows: a file that is not uploaded yet, or one on the server. The shell shows the dialog. */
import { PersonalStore } from "../lib/personal";

export type ShownImport = { file: File; id: null } | { file: null; id: string };

export const shownImport = new PersonalStore<ShownImport | null>(null); // null: the dialog is closed

/** Asks whether a file should be imported. */
export function offerImport(file: File): void {
  shownImport.update(() => ({ file, id: null }));
}

export function openImport(id: string): void {
  shownImport.update(() => ({ file: null, id }));
}

export function closeImportDialog(): void {
  shownImport.update(() => null);
}
