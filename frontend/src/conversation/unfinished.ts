/**
 * What somebody writes and has not sent: texts, files and changed messages, each in the place it is written for.
 *
 * Always true: it belongs to one person; whoever else signs in here sees nothing of it. Texts are kept in this browser
 * until they are sent; files and changed messages as long as the page is open.
 */
import * as calls from "../api/calls";
import { keep, recall } from "../lib/keep";
import { Store } from "../lib/store";
import { toast } from "../ui/toasts";
import { words } from "../words";
import { whyNot } from "../words/refusals";
import type { FilePart } from "./content";

const MOST = 10; // files in one message

/** A file that is added to a message: it is uploaded at once, and named in the message when that is sent. */
export interface Adding {
  id: number;
  name: string;
  size: number;
  file: File | null; // null: it was sent before, and came back
  uploaded: FilePart | null;
}

const NONE: readonly Adding[] = [];

export class Unfinished {
  readonly files = new Store<ReadonlyMap<string, readonly Adding[]>>(new Map());
  #edits = new Map<string, string>();
  #last = 0;

  constructor(private readonly person: string) {}

  text(place: string): string {
    return recall(this.#name(place)) ?? "";
  }

  keepText(place: string, text: string): void {
    keep(this.#name(place), text === "" ? null : text);
  }

  /** A message as it is being changed; null: it is not. */
  edit(place: string, seq: number): string | null {
    return this.#edits.get(`${place} ${seq}`) ?? null;
  }

  keepEdit(place: string, seq: number, text: string | null): void {
    if (text === null) this.#edits.delete(`${place} ${seq}`);
    else this.#edits.set(`${place} ${seq}`, text);
  }

  added(place: string): readonly Adding[] {
    return this.files.value.get(place) ?? NONE;
  }

  add(place: string, files: Iterable<File>): void {
    const given = [...files];
    const taken = given.slice(0, MOST - this.added(place).length);
    if (taken.length < given.length) toast(words.tooManyFiles(MOST));
    for (const file of taken) {
      const id = ++this.#last;
      this.#change(place, (all) => [...all, { id, name: file.name, size: file.size, file, uploaded: null }]);
      calls.upload(file).then(
        (uploaded) => this.#change(place, (all) => all.map((each) => (each.id === id ? { ...each, uploaded } : each))),
        (error: unknown) => {
          this.remove(place, id);
          toast(words.uploadFailed(file.name, whyNot(error)));
        },
      );
    }
  }

  /** Files that were sent and not taken, to be sent otherwise. */
  putBack(place: string, files: readonly FilePart[]): void {
    const back = files.map((each) => ({ id: ++this.#last, name: each.name, size: each.size, file: null, uploaded: each }));
    this.#change(place, (all) => [...all, ...back]);
  }

  remove(place: string, id: number): void {
    this.#change(place, (all) => all.filter((each) => each.id !== id));
  }

  /** The files of a place have been sent, or are wanted no more. */
  clear(place: string): void {
    this.#change(place, () => NONE);
  }

  /** A conversation is there no more, and what was written for it goes as well. */
  forget(place: string): void {
    this.keepText(place, "");
    this.clear(place);
  }

  #change(place: string, change: (all: readonly Adding[]) => readonly Adding[]): void {
    const changed = change(this.added(place));
    this.files.update((files) => {
      const others = [...files].filter(([each]) => each !== place);
      return new Map(changed.length === 0 ? others : [...others, [place, changed]]);
    });
  }

  #name(place: string): string {
    return `draft.${this.person}.${place}`;
  }
}
