/** The lists of conversations that the sidebar can show, and how far each was loaded. Pure. */
import type { Session } from "../api/types";

export interface ListView {
  state: "active" | "archived";
  project: string | null;
}

export const ACTIVE_VIEW: ListView = { state: "active", project: null };
export const ARCHIVE_VIEW: ListView = { state: "archived", project: null };

export interface ListProgress {
  cursor: string | null;
  frontier: string | null; // last activity of the last session that was loaded; null: nothing was loaded yet
  complete: boolean;
  loading: boolean;
  failed: boolean;
}

export const NOT_LOADED: ListProgress = { cursor: null, frontier: null, complete: false, loading: false, failed: false };

/** The key under which the progress of a view is stored. */
export function getViewKey(view: ListView): string {
  return `${view.state}/${view.project ?? ""}`;
}

export function isInView(session: Session, view: ListView): boolean {
  if (session.active_at === null || session.archived !== (view.state === "archived")) return false;
  return view.project === null || session.project_id === view.project;
}
