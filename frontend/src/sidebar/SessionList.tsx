/** The list of conversations. Only visible rows are rendered, and more are loaded while scrolling. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useEffectEvent, useMemo, useRef } from "react";
import type { Session } from "../api/types";
import { getDayGroup } from "../format/time";
import { useToday } from "../format/useToday";
import { parseSessionLocation, useLocation } from "../lib/router";
import { useStore } from "../lib/store";
import { useLiveClient, useSessions } from "../live/context";
import { getViewKey, NOT_LOADED, type ListView } from "../live/listViews";
import { useProjects } from "../sessions/useProjects";
import { words } from "../words";
import { buildRows, filterSessions } from "./listRows";
import { SessionRow } from "./SessionRow";
import type { Selection } from "./useSelection";
import "./SessionList.css";

const LOAD_AHEAD_ROWS = 15;
const ROW_PX = 58;
const HEADING_PX = 34;

interface Props {
  view: ListView;
  selection: Selection;
  onOrder: (ids: readonly string[]) => void; // called with the listed conversations, in their order
}

export function SessionList({ view, selection, onOrder }: Props) {
  const client = useLiveClient();
  const sessions = useSessions();
  const viewKey = getViewKey(view);
  const progress = useStore(client.lists.progress, (all) => all[viewKey] ?? NOT_LOADED);
  const projects = useProjects();
  const openId = parseSessionLocation(useLocation())?.id;
  const today = useToday();
  const scroller = useRef<HTMLDivElement>(null);

  const listed = useMemo(() => filterSessions(sessions.values(), view, progress), [sessions, view, progress]);
  const rows = useMemo(() => buildRows(listed, words.pinned, (at) => getDayGroup(at, today)), [listed, today]);
  const order = useMemo(() => rows.flatMap((row) => (row.kind === "session" ? row.session.id : [])), [rows]);
  useEffect(() => onOrder(order), [onOrder, order]);

  const { ids, toggle } = selection;
  const onSelect = useCallback((id: string, mode: "one" | "range") => toggle(id, mode, order), [toggle, order]);
  const onDrag = useCallback((id: string) => (ids.has(id) ? [...ids] : [id]), [ids]);

  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    getItemKey: (index) => rows[index]?.key ?? index,
    estimateSize: (index) => (rows[index]?.kind === "heading" ? HEADING_PX : ROW_PX),
    overscan: 10,
  });
  const items = virtualizer.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? -1;

  useEffect(() => {
    const isNear = lastShown >= rows.length - LOAD_AHEAD_ROWS;
    if (isNear && !progress.complete && !progress.loading && !progress.failed) void client.lists.loadMore(view);
  }, [client, view, progress, lastShown, rows.length]);

  // Scrolls to a conversation that was opened by a shortcut, a link or a search. Later scrolling is left alone.
  const scrollToOpen = useEffectEvent(() => {
    const index = rows.findIndex((row) => row.key === openId);
    if (index >= 0) virtualizer.scrollToIndex(index, { align: "auto" });
  });
  const isLoaded = progress.frontier !== null;
  useEffect(() => scrollToOpen(), [openId, isLoaded]);

  if (rows.length === 0 && progress.complete) return <EmptyList view={view} />;
  return (
    <div className="session-list" ref={scroller}>
      <div className="rows" style={{ height: virtualizer.getTotalSize() }} role="list">
        {items.map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          return (
            <div
              key={item.key}
              className="list-row"
              role="listitem"
              style={{ transform: `translateY(${item.start}px)`, height: item.size }}
            >
              {row.kind === "heading" ? (
                <h3>{row.text}</h3>
              ) : (
                <SessionRow
                  session={row.session}
                  project={view.project === null ? findProject(row.session) : undefined}
                  today={today}
                  isOpen={row.session.id === openId}
                  isSelecting={selection.isActive}
                  isSelected={selection.ids.has(row.session.id)}
                  onSelect={onSelect}
                  onDrag={onDrag}
                />
              )}
            </div>
          );
        })}
      </div>
      {progress.failed && (
        <button type="button" className="text-button" onClick={() => void client.lists.loadMore(view)}>
          {words.tryAgain}
        </button>
      )}
    </div>
  );

  function findProject(session: Session) {
    return projects.find((project) => project.id === session.project_id);
  }
}

function EmptyList({ view }: { view: ListView }) {
  if (view.state === "archived") return <p className="empty-note">{words.archiveEmpty}</p>;
  if (view.project !== null) return <p className="empty-note">{words.projectEmpty}</p>;
  return (
    <p className="empty-note">
      {words.listEmpty}
      <br />
      {words.listEmptyHint}
    </p>
  );
}
