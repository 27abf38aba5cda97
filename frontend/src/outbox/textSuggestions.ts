/** A text that another part of the page puts into a composer. */
import { Store } from "../lib/store";

interface TextSuggestion {
  id: number;
  draftId: string;
  text: string;
  mode: "replace" | "if-empty";
}

export const textSuggestion = new Store<TextSuggestion | null>(null);
let lastId = 0;

export function suggestText(draftId: string, text: string, mode: TextSuggestion["mode"] = "replace"): void {
  textSuggestion.update(() => ({ id: ++lastId, draftId, text, mode }));
}
