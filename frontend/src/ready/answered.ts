/** Whether a conversation has just been answered, and how many wait to be read. Pure. */
import type { Session } from "../api/types";
import { isUnread } from "../sidebar/arrange";

/**
 * An answer has ended between these two states of a session. One that was quick was never seen running, and a
 * conversation that was begun since we are here may be answered before we have heard of it.
 */
export function isAnswered(before: Session | undefined, after: Session, here: string): boolean {
  if (isBusy(after)) return false;
  if (before === undefined) return after.created_at > here && after.message_count >= 2;
  if (after.last_seq <= before.last_seq) return false;
  return isBusy(before) || after.message_count >= before.message_count + 2;
}

function isBusy(session: Session): boolean {
  return session.running || session.queued > 0;
}

/** How many conversations wait to be read, without the one that somebody is looking at. */
export function unreadCount(sessions: Iterable<Session>, since: string, lookedAt: string | null): number {
  let count = 0;
  for (const each of sessions) {
    if (each.id !== lookedAt && !each.archived && isUnread(each, since)) count += 1;
  }
  return count;
}
