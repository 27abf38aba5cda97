/** The search result that was opened last. The conversation shows where in the message it matches. */
import { Store } from "../lib/store";

export interface SearchJump {
  sessionId: string;
  seq: number; // of the message
  texts: readonly string[]; // the parts of it that match, as they are written there
}

export const searchJump = new Store<SearchJump | null>(null);

export function setSearchJump(jump: SearchJump | null): void {
  searchJump.update(() => jump);
}
