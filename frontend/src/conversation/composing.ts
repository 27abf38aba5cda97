/** A text that is offered from elsewhere on the page to whoever writes in a conversation. */
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

/** Put a text before somebody who may want to go on with it. */
export function offerText(place: string, text: string, how: Offer["how"] = "replace"): void {
  offered.update(() => ({ place, text, how, id: ++last }));
}
