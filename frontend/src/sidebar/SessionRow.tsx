/** One conversation in the list. */
import { memo, useEffect, useRef, useState, type DragEvent, type MouseEvent } from "react";
import type { Project, Session } from "../api/types";
import { formatDateTime, formatRecent } from "../format/time";
import { hideSidebarIfNarrow } from "../layout/sidebarVisibility";
import { useLiveClient, useMe } from "../live/context";
import { updateSessions } from "../sessions/actions";
import { getSessionName } from "../sessions/names";
import { SessionMenu } from "../sessions/SessionMenu";
import { TitleField } from "../sessions/TitleField";
import { isUnread } from "../sessions/unread";
import { UserIcon } from "../ui/icons";
import { Link } from "../ui/Link";
import { PlatformBadge } from "../ui/PlatformBadge";
import { words } from "../words";
import { SESSION_DRAG_TYPE } from "./sessionDrag";
import "./SessionList.css";

interface Props {
  session: Session;
  project: Project | undefined;
  today: number; // so that the time is formatted again on the next day
  isOpen: boolean;
  isSelecting: boolean;
  isSelected: boolean;
  onSelect: (id: string, mode: "one" | "range") => void;
  onDrag: (id: string) => readonly string[]; // returns the conversations to drag
}

export const SessionRow = memo(function SessionRow(props: Props) {
  const { session, project, today, isOpen, isSelecting, isSelected, onSelect } = props;
  const client = useLiveClient();
  const [isRenaming, setRenaming] = useState(false);
  const hasUnread = !isOpen && isUnread(session, client.firstVisitAt);
  const name = getSessionName(session);
  const link = useRef<HTMLAnchorElement>(null);
  const wasRenaming = useRef(false);
  useEffect(() => {
    if (wasRenaming.current && !isRenaming && document.activeElement === document.body) link.current?.focus();
    wasRenaming.current = isRenaming;
  }, [isRenaming]);

  if (isRenaming) {
    return (
      <div className="session renaming">
        <TitleField
          title={session.title ?? ""}
          onDone={(title) => {
            setRenaming(false);
            if (title !== null) void updateSessions(client, [session.id], { title: title === "" ? null : title });
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
      hideSidebarIfNarrow();
    }
  };

  return (
    <div
      className="session"
      data-open={isOpen}
      data-unread={hasUnread}
      data-selected={isSelected}
      draggable
      onDragStart={(event: DragEvent) => {
        event.dataTransfer.setData(SESSION_DRAG_TYPE, JSON.stringify(props.onDrag(session.id)));
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
        onDoubleClick={isSelecting ? undefined : () => setRenaming(true)}
        aria-current={isOpen ? "page" : undefined}
        draggable={false}
      >
        <span className="session-top">
          {session.platform !== "web" && <PlatformBadge platform={session.platform} />}
          <span className="session-name" dir="auto">
            {name}
          </span>
          {session.running && <span className="running-dot" role="img" aria-label={words.answering} title={words.answering} />}
          {hasUnread && !session.running && <span className="unread-dot" role="img" aria-label={words.unread} />}
        </span>
        <span className="session-details">
          {project !== undefined && (
            <span className="swatch" style={{ backgroundColor: project.color ?? undefined }} title={project.name} />
          )}
          {client.showsAll.value && <SessionOwner session={session} />}
          <span className="session-preview" dir="auto">
            {session.preview}
          </span>
          <time dateTime={session.active_at ?? session.created_at} title={formatDateTime(session.active_at ?? session.created_at)}>
            {formatRecent(session.active_at ?? session.created_at, today)}
          </time>
        </span>
      </Link>
      {!isSelecting && (
        <SessionMenu session={session} onRename={() => setRenaming(true)} onSelect={() => onSelect(session.id, "one")} />
      )}
    </div>
  );
});

/** Whose conversation it is, where the conversations of several people are listed. */
export function SessionOwner({ session: { owner_name: name } }: { session: Pick<Session, "owner_name"> }) {
  const me = useMe();
  return (
    <span className="session-owner" dir="auto">
      <UserIcon />
      {name === null ? words.severalPeople : name === me.person.name ? words.you : name}
    </span>
  );
}
