/** One conversation in the list. */
import { memo, useEffect, useRef, useState, type DragEvent, type MouseEvent } from "react";
import type { Project, Session } from "../api/types";
import { change } from "../conversation/actions";
import { TitleField } from "../conversation/TitleField";
import { Link } from "../lib/Link";
import { ago, moment } from "../lib/time";
import { useCenter } from "../live/context";
import { giveWay } from "../shell/layout";
import { PlatformBadge } from "../ui/PlatformBadge";
import { words } from "../words";
import { isUnread } from "./arrange";
import { DRAGGED } from "./dragging";
import { nameOf, plain } from "./naming";
import { SessionMenu } from "./SessionMenu";

interface Props {
  session: Session;
  project: Project | undefined;
  today: number; // so that its time is told anew the next day
  isOpen: boolean;
  isSelecting: boolean;
  isSelected: boolean;
  onSelect: (id: string, how: "one" | "range") => void;
  onDrag: (id: string) => readonly string[]; // what goes along when this one is dragged
}

export const SessionRow = memo(function SessionRow(props: Props) {
  const { session, project, today, isOpen, isSelecting, isSelected, onSelect } = props;
  const center = useCenter();
  const [isNaming, setNaming] = useState(false);
  const unread = !isOpen && isUnread(session, center.since);
  const name = nameOf(session);
  const link = useRef<HTMLAnchorElement>(null);
  const wasNaming = useRef(false);
  useEffect(() => {
    if (wasNaming.current && !isNaming && document.activeElement === document.body) link.current?.focus();
    wasNaming.current = isNaming;
  }, [isNaming]);

  if (isNaming) {
    return (
      <div className="session naming">
        <TitleField
          title={session.title ?? ""}
          onDone={(title) => {
            setNaming(false);
            if (title !== null) void change(center, [session.id], { title: title === "" ? null : title });
          }}
        />
      </div>
    );
  }

  const onClick = (event: MouseEvent) => {
    if (isSelecting || event.metaKey || event.ctrlKey || event.shiftKey) {
      event.preventDefault();
      onSelect(session.id, event.shiftKey ? "range" : "one");
    } else {
      giveWay();
    }
  };

  return (
    <div
      className="session"
      data-open={isOpen}
      data-unread={unread}
      data-selected={isSelected}
      draggable
      onDragStart={(event: DragEvent) => {
        event.dataTransfer.setData(DRAGGED, JSON.stringify(props.onDrag(session.id)));
        event.dataTransfer.effectAllowed = "move";
      }}
    >
      {isSelecting && (
        <input
          type="checkbox"
          checked={isSelected}
          aria-label={name}
          onChange={() => onSelect(session.id, "one")}
          className="session-check"
        />
      )}
      <Link
        ref={link}
        to={session.id}
        onClick={onClick}
        onDoubleClick={isSelecting ? undefined : () => setNaming(true)}
        aria-current={isOpen ? "page" : undefined}
        draggable={false}
      >
        <span className="session-top">
          {session.platform !== "web" && <PlatformBadge platform={session.platform} />}
          <span className="session-name" dir="auto">
            {name}
          </span>
          {session.running && <span className="live-dot" role="img" aria-label={words.running} title={words.running} />}
          {unread && !session.running && <span className="unread-dot" role="img" aria-label={words.unread} />}
        </span>
        <span className="session-under">
          {project !== undefined && (
            <span className="swatch" style={{ backgroundColor: project.colour ?? undefined }} title={project.name} />
          )}
          <span className="session-preview" dir="auto">
            {session.owner !== null ? `${session.owner}: ` : ""}
            {plain(session.preview)}
          </span>
          <time dateTime={session.active_at ?? session.created_at} title={moment(session.active_at ?? session.created_at)}>
            {ago(session.active_at ?? session.created_at, today)}
          </time>
        </span>
      </Link>
      {!isSelecting && (
        <SessionMenu session={session} onRename={() => setNaming(true)} onSelect={() => onSelect(session.id, "one")} />
      )}
    </div>
  );
});
