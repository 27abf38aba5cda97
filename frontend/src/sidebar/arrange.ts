/** Which conversations a list shows, in which order, under which headings. Pure. */
import type { Session } from "../api/types";

export interface View {
  shelf: "current" | "archived";
  project: string | null;
}

/** How far a list has been fetched. */
export interface Fetched {
  cursor: string | null;
  frontier: string | null; // the activity of the last one that came; null: nothing came yet
  complete: boolean;
  loading: boolean;
  failed: boolean;
}

export const UNFETCHED: Fetched = { cursor: null, frontier: null, complete: false, loading: false, failed: false };

type ListRow =
  | { kind: "heading"; key: string; text: string }
  | { kind: "session"; key: string; session: Session };

/** The name under which a view's progress is kept. */
export function viewName(view: View): string {
  return `${view.shelf}/${view.project ?? ""}`;
}

export function belongs(session: Session, view: View): boolean {
  if (session.active_at === null || session.archived !== (view.shelf === "archived")) return false;
  return view.project === null || session.project_id === view.project;
}

/**
 * The conversations of a view, newest first. Those older than what was fetched are left out, because there may be
 * others between them that nobody has told us of.
 */
export function listed(sessions: Iterable<Session>, view: View, fetched: Fetched): Session[] {
  const found = [...sessions].filter((session) => belongs(session, view) && isReached(session, fetched));
  return found.sort(newestFirst);
}

function isReached(session: Session, { complete, frontier }: Fetched): boolean {
  return complete || session.pinned || (frontier !== null && (session.active_at ?? "") >= frontier);
}

export function newestFirst(a: Session, b: Session): number {
  const [left, right] = [a.active_at ?? "", b.active_at ?? ""];
  if (left !== right) return left < right ? 1 : -1;
  return a.id < b.id ? 1 : -1;
}

/** The rows of a list that is newest first: what is pinned, then day by day. */
export function grouped(sessions: readonly Session[], pinned: string, groupOf: (at: string) => string): ListRow[] {
  const rows: ListRow[] = [];
  const under = (text: string, group: readonly Session[]) => {
    if (group.length > 0) rows.push({ kind: "heading", key: `heading-${text}`, text });
    for (const session of group) rows.push({ kind: "session", key: session.id, session });
  };
  const isOnTop = (session: Session) => session.pinned && !session.archived;
  under(pinned, sessions.filter(isOnTop));
  const others = sessions.filter((session) => !isOnTop(session));
  const groupAt = (place: number) => groupOf(others[place]?.active_at ?? others[place]?.created_at ?? "");
  for (let first = 0; first < others.length; ) {
    const text = groupAt(first);
    const end = endOf(text, groupAt, first, others.length);
    under(text, others.slice(first, end));
    first = end;
  }
  return rows;
}

/** Where a group ends. Groups follow each other as days do, so that few of very many have to be looked at. */
function endOf(text: string, groupAt: (place: number) => string, first: number, count: number): number {
  let [within, beyond] = [first, count];
  while (beyond - within > 1) {
    const middle = (within + beyond) >> 1;
    if (groupAt(middle) === text) within = middle;
    else beyond = middle;
  }
  return beyond;
}

/** Whether something was said that the reader has not seen. What was said before they first came here does not count. */
export function isUnread(session: Session, since: string): boolean {
  return session.last_seq > session.read_seq && (session.read_seq > 0 || (session.active_at ?? "") > since);
}
