/**
 * What a person has typed and not sent: texts, files and edited messages. A draft has the id of its conversation, or
 * `NEW_DRAFT`.
 *
 * Always true: drafts belong to one person, and no other person who signs in to this browser sees them. Texts stay in the
 * browser until they are sent, except that of the temporary conversation; it, files and edited messages stay while the
 * page is open.
 */
import * as calls from "../api/calls";
import { describeError } from "../api/errors";
import type { FilePart } from "../api/messageContent";
import { storage } from "../lib/storage";
import { Store } from "../lib/store";
import { toast } from "../ui/toasts";
import { words } from "../words";

/** The draft of a conversation that does not exist yet. */
export const NEW_DRAFT = "new";

/** The draft of the temporary conversation. Its text is never stored in the browser. */
export const TEMPORARY_DRAFT = "temporary";

const MAX_FILES = 10; // in one message

/** A file that is added to a message. It is uploaded at once; the message refers to it when it is sent. */
export interface DraftFile {
  id: number;
  name: string;
  size: number;
  file: File | null; // null: it was restored from a message that was not accepted
  uploaded: FilePart | null;
}

const NO_FILES: readonly DraftFile[] = [];

export class ComposerDrafts {
  readonly files = new Store<ReadonlyMap<string, readonly DraftFile[]>>(new Map());
  #edits = new Map<string, string>();
  #temporaryText = "";
  #lastFileId = 0;

  constructor(private readonly personId: string) {}

  getText(draftId: string): string {
    return draftId === TEMPORARY_DRAFT ? this.#temporaryText : (storage.get(this.#storageKey(draftId)) ?? "");
  }

  setText(draftId: string, text: string): void {
    if (draftId === TEMPORARY_DRAFT) this.#temporaryText = text;
    else storage.set(this.#storageKey(draftId), text === "" ? null : text);
  }

  /** The new text of a message that is being edited; null: it is not being edited. */
  getEdit(draftId: string, seq: number): string | null {
    return this.#edits.get(`${draftId} ${seq}`) ?? null;
  }

  setEdit(draftId: string, seq: number, text: string | null): void {
    if (text === null) this.#edits.delete(`${draftId} ${seq}`);
    else this.#edits.set(`${draftId} ${seq}`, text);
  }

  getFiles(draftId: string): readonly DraftFile[] {
    return this.files.value.get(draftId) ?? NO_FILES;
  }

  addFiles(draftId: string, files: Iterable<File>): void {
    const chosen = [...files];
    const accepted = chosen.slice(0, MAX_FILES - this.getFiles(draftId).length);
    if (accepted.length < chosen.length) toast(words.tooManyFiles(MAX_FILES));
    for (const file of accepted) {
      const id = ++this.#lastFileId;
      this.#changeFiles(draftId, (all) => [...all, { id, name: file.name, size: file.size, file, uploaded: null }]);
      calls.uploadFile(file).then(
        (uploaded) => this.#changeFiles(draftId, (all) => all.map((each) => (each.id === id ? { ...each, uploaded } : each))),
        (error: unknown) => {
          this.removeFile(draftId, id);
          toast(words.uploadFailed(file.name, describeError(error)));
        },
      );
    }
  }

  /** Adds files of a message that was not accepted, so that they can be sent again. */
  restoreFiles(draftId: string, files: readonly FilePart[]): void {
    const restored = files.map((each) => ({
      id: ++this.#lastFileId,
      name: each.name,
      size: each.size,
      file: null,
      uploaded: each,
    }));
    this.#changeFiles(draftId, (all) => [...all, ...restored]);
  }

  removeFile(draftId: string, id: number): void {
    this.#changeFiles(draftId, (all) => all.filter((each) => each.id !== id));
  }

  clearFiles(draftId: string): void {
    this.#changeFiles(draftId, () => NO_FILES);
  }

  /** Deletes the draft of a conversation that was deleted. */
  discard(draftId: string): void {
    this.setText(draftId, "");
    this.clearFiles(draftId);
  }

  #changeFiles(draftId: string, change: (all: readonly DraftFile[]) => readonly DraftFile[]): void {
    const changed = change(this.getFiles(draftId));
    this.files.update((files) => {
      const others = [...files].filter(([id]) => id !== draftId);
      return new Map(changed.length === 0 ? others : [...others, [draftId, changed]]);
    });
  }

  #storageKey(draftId: string): string {
    return `draft.${this.personId}.${draftId}`;
  }
}
