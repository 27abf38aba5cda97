/** Says who sent a message that is no answer. Pure. */
import type { SentBy } from "../api/types";
import { words } from "../words";

export function describeSender({ kind, name }: SentBy): string {
  return kind === "job" ? words.sentByJob(name) : words.sentByAgent(name);
}

/** The conversation of the run that sent a message; null where the reader may not be allowed to see it. */
export function findSenderConversation({ kind, session_id: sessionId }: SentBy, isShared: boolean): string | null {
  return kind === "job" && !isShared ? sessionId : null;
}
