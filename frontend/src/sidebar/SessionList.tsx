/** The list of conversations: as many rows as fit, fetched as somebody scrolls. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useEffectEvent, useMemo, useRef } from "react";
import type { Session } from "../api/types";
import { sessionAt, useHere } from "../lib/router";
import { useStore } from "../lib/store";
import { dayGroup } from "../lib/time";
import { useToday } from "../lib/useToday";
import { useCenter, useSessions } from "../live/context";
import { words } from "../words";
import { grouped, listed, UNFETCHED, viewName, type View } from "./arrange";
import { SessionRow } from "./SessionRow";
import type { Selection } from "./useSelection";
import { useProjects } from "./useProjects";

const ROW = 58;
const HEADING = 34;

interface Props {
  view: View;
  selection: Selection;
  onOrder: (ids: readonly string[]) => void;
}

export function SessionList({ view, selection, onOrder }: Props) {
  const center = useCenter();
  const sessions = useSessions();
  const name = viewName(view);
  const fetched = useStore(center.lists.fetched, (all) => all[name] ?? UNFETCHED);
  const projects = useProjects();
  const open = sessionAt(useHere())?.id;
  const today = useToday();
  const scroller = useRef<HTMLDivElement>(null);

  const found = useMemo(() => listed(sessions.values(), view, fetched), [sessions, view, fetched]);
  const rows = useMemo(() => grouped(found, words.pinned, (at) => dayGroup(at, today)), [found, today]);
  const order = useMemo(() => rows.flatMap((row) => (row.kind === "session" ? row.session.id : [])), [rows]);
  useEffect(() => onOrder(order), [onOrder, order]);

  const { ids, toggle } = selection;
  const onSelect = useCallback((id: string, how: "one" | "range") => toggle(id, how, order), [toggle, order]);
  const onDrag = useCallback((id: string) => (ids.has(id) ? [...ids] : [id]), [ids]);

  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    getItemKey: (index) => rows[index]?.key ?? index,
    estimateSize: (index) => (rows[index]?.kind === "heading" ? HEADING : ROW),
    overscan: 10,
  });
  const items = virtualizer.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? -1;

  useEffect(() => {
    const isNear = lastShown >= rows.length - 15;
    if (isNear && !fetched.complete && !fetched.loading && !fetched.failed) void center.lists.more(view);
  }, [center, view, fetched, lastShown, rows.length]);

  // What is opened by a key, a link or a search is brought into sight; scrolling on from there is left alone.
  const bringIntoSight = useEffectEvent(() => {
    const place = rows.findIndex((row) => row.key === open);
    if (place >= 0) virtualizer.scrollToIndex(place, { align: "auto" });
  });
  const isThere = fetched.frontier !== null;
  useEffect(() => bringIntoSight(), [open, isThere]);

  if (rows.length === 0 && fetched.complete) return <Nothing view={view} />;
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
                  project={view.project === null ? projectOf(row.session) : undefined}
                  today={today}
                  isOpen={row.session.id === open}
                  isSelecting={selection.isOn}
                  isSelected={selection.ids.has(row.session.id)}
                  onSelect={onSelect}
                  onDrag={onDrag}
                />
              )}
            </div>
          );
        })}
      </div>
      {fetched.failed && (
        <button type="button" className="text-button" onClick={() => void center.lists.more(view)}>
          {words.again}
        </button>
      )}
    </div>
  );

  function projectOf(session: Session) {
    return projects.find((project) => project.id === session.project_id);
  }
}

function Nothing({ view }: { view: View }) {
  if (view.shelf === "archived") return <p className="nothing">{words.nothingArchived}</p>;
  if (view.project !== null) return <p className="nothing">{words.nothingInProject}</p>;
  return (
    <p className="nothing">
      {words.noConversations}
      <br />
      {words.noConversationsHint}
    </p>
  );
}
