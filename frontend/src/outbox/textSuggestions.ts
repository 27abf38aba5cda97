/** A text that another part of the page puts into a composer. */
import { PersonalStore } from "../lib/personal";

interface TextSuggestion {
  id: number;
  draftId: string;
  text: string;
  mode: "replace" | "if-empty";
}

export const textSuggestion = new PersonalStore<TextSuggestion | null>(null);
let lastId = 0;

export function suggestText(draftId: string, text: string, mode: TextSuggestion["mode"] = "replace"): void {
  textSuggestion.update(() => ({ id: ++lastId, draftId, text, mode }));
}
