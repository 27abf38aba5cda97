/** Which conversations have messages that the reader has not seen. Pure. */
import type { Session } from "../api/types";

/** Whether a session has unread messages. Messages from before `since`, the reader's first visit, do not count. */
export function isUnread(session: Session, since: string): boolean {
  return session.last_seq > session.read_seq && (session.read_seq > 0 || (session.active_at ?? "") > since);
}

/** Counts the unread sessions, without the open one and without the archive. */
export function countUnread(sessions: Iterable<Session>, since: string, openId: string | null): number {
  let count = 0;
  for (const session of sessions) {
    if (session.id !== openId && !session.archived && isUnread(session, since)) count += 1;
  }
  return count;
}
