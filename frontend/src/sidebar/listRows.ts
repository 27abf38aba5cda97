/** The rows of the list: which conversations it shows, in which order and under which headings. Pure. */
import type { Session } from "../api/types";
import { isInView, type ListProgress, type ListView } from "../live/listViews";
import { compareByActivity } from "../sessions/order";

type ListRow =
  | { kind: "heading"; key: string; text: string }
  | { kind: "session"; key: string; session: Session };

/**
 * The conversations of a view, newest first. Those older than the loaded part are left out, because others that the page does
 * not know yet may belong in between.
 */
export function filterSessions(sessions: Iterable<Session>, view: ListView, progress: ListProgress): Session[] {
  const matches = [...sessions].filter((session) => isInView(session, view) && isLoaded(session, progress));
  return matches.sort(compareByActivity);
}

function isLoaded(session: Session, { complete, frontier }: ListProgress): boolean {
  return complete || session.pinned || (frontier !== null && (session.active_at ?? "") >= frontier);
}

/** Builds the rows for sessions that are newest first: the pinned ones, then the others by day. */
export function buildRows(sessions: readonly Session[], pinnedHeading: string, getGroup: (at: string) => string): ListRow[] {
  const rows: ListRow[] = [];
  const addGroup = (text: string, group: readonly Session[]) => {
    if (group.length > 0) rows.push({ kind: "heading", key: `heading-${text}`, text });
    for (const session of group) rows.push({ kind: "session", key: session.id, session });
  };
  const isPinnedRow = (session: Session) => session.pinned && !session.archived;
  addGroup(pinnedHeading, sessions.filter(isPinnedRow));
  const others = sessions.filter((session) => !isPinnedRow(session));
  const getGroupAt = (index: number) => getGroup(others[index]?.active_at ?? others[index]?.created_at ?? "");
  for (let first = 0; first < others.length; ) {
    const text = getGroupAt(first);
    const end = findGroupEnd(text, getGroupAt, first, others.length);
    addGroup(text, others.slice(first, end));
    first = end;
  }
  return rows;
}

/** Finds where a group ends, by binary search: the sessions are sorted by time, so a group is never interrupted. */
function findGroupEnd(text: string, getGroupAt: (index: number) => string, first: number, count: number): number {
  let [within, beyond] = [first, count];
  while (beyond - within > 1) {
    const middle = (within + beyond) >> 1;
    if (getGroupAt(middle) === text) within = middle;
    else beyond = middle;
  }
  return beyond;
}
