/** The search result that was opened last. The conversation shows where in the message it matches. */
import { PersonalStore } from "../lib/personal";

export interface SearchJump {
  sessionId: string;
  seq: number; // of the message
  texts: readonly string[]; // the parts of it that match, as they are written there
}

export const searchJump = new PersonalStore<SearchJump | null>(null);

export function setSearchJump(jump: SearchJump | null): void {
  searchJump.update(() => jump);
}
