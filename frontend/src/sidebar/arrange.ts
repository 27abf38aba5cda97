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

/** The rows of a list: what is pinned, then day by day. */
export function grouped(sessions: readonly Session[], pinned: string, groupOf: (at: string) => string): ListRow[] {
  const rows: ListRow[] = [];
  let heading = "";
  const under = (text: string) => {
    if (text !== heading) rows.push({ kind: "heading", key: `heading-${text}`, text });
    heading = text;
  };
  const onTop = sessions.filter((session) => session.pinned && !session.archived);
  const others = sessions.filter((session) => !session.pinned || session.archived);
  for (const session of [...onTop, ...others]) {
    under(session.pinned && !session.archived ? pinned : groupOf(session.active_at ?? session.created_at));
    rows.push({ kind: "session", key: session.id, session });
  }
  return rows;
}

/** Whether something was said that the reader has not seen. What was said before they first came here does not count. */
export function isUnread(session: Session, since: string): boolean {
  return session.last_seq > session.read_seq && (session.read_seq > 0 || (session.active_at ?? "") > since);
}
