/** What is being written: kept per conversation in this browser, and offered from elsewhere on the page. */
import { keep, recall } from "../lib/keep";
import { Store } from "../lib/store";

interface Offer {
  place: string;
  text: string;
  how: "replace" | "if-empty";
  id: number;
}

export const offered = new Store<Offer | null>(null);
let last = 0;

/** The place of a conversation that has not begun yet. */
export const NEW = "new";

export function unfinished(place: string): string {
  return recall(`draft.${place}`) ?? "";
}

export function keepUnfinished(place: string, text: string): void {
  keep(`draft.${place}`, text === "" ? null : text);
}

/** Put a text before somebody who may want to go on with it. */
export function offerText(place: string, text: string, how: Offer["how"] = "replace"): void {
  offered.update(() => ({ place, text, how, id: ++last }));
}
