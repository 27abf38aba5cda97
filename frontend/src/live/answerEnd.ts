/** Detects the end of an answer from two states of a session. Pure. */
import type { Session } from "../api/types";

/**
 * Whether an answer has ended between two states of a session. A quick answer was never reported as running, and a
 * conversation that was created after the page was opened (`openedAt`) may be answered before the page knows it.
 */
export function hasAnswerEnded(before: Session | undefined, after: Session, openedAt: string): boolean {
  if (isBusy(after)) return false;
  if (before === undefined) return after.created_at > openedAt && after.message_count >= 2;
  if (after.last_seq <= before.last_seq) return false;
  return isBusy(before) || after.message_count >= before.message_count + 2;
}

function isBusy(session: Session): boolean {
  return session.running || session.queued > 0;
}
