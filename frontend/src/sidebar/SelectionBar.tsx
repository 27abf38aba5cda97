/** The actions for all selected conversations. If one fails, the selection stays. */
import { useEffect } from "react";
import { useLiveClient, useSessions } from "../live/context";
import { archiveSessions, deleteSessions, moveSessions, updateSessions } from "../sessions/actions";
import { useProjects } from "../sessions/useProjects";
import { ArchiveIcon, CloseIcon, FolderIcon, PinIcon, TrashIcon } from "../ui/icons";
import { Menu, MenuItem } from "../ui/Menu";
import { words } from "../words";
import type { Selection } from "./useSelection";
import "./SessionList.css";

export function SelectionBar({ selection, isArchive }: { selection: Selection; isArchive: boolean }) {
  const client = useLiveClient();
  const projects = useProjects();
  const sessions = useSessions();
  const { end } = selection;
  const ids = [...selection.ids].filter((id) => sessions.has(id));
  const isEmpty = ids.length === 0; // all of them were deleted in another place
  useEffect(() => {
    if (isEmpty) end();
  }, [isEmpty, end]);
  const endIfDone = (action: Promise<boolean>) => void action.then((worked) => worked && end());
  return (
    <div className="selection-bar" role="toolbar" aria-label={words.selected(ids.length)}>
      <span>{words.selected(ids.length)}</span>
      <span className="spacer" />
      <ToolbarButton label={words.pin} icon={<PinIcon />} onClick={() => endIfDone(updateSessions(client, ids, { pinned: true }))} />
      <Menu
        button={
          <button type="button" className="icon-button" title={words.moveTo} aria-label={words.moveTo}>
            <FolderIcon />
          </button>
        }
      >
        <MenuItem onSelect={() => endIfDone(moveSessions(client, ids, null))}>{words.noProject}</MenuItem>
        {projects.map((project) => (
          <MenuItem key={project.id} onSelect={() => endIfDone(moveSessions(client, ids, project))}>
            {project.name}
          </MenuItem>
        ))}
      </Menu>
      <ToolbarButton
        label={isArchive ? words.unarchive : words.archiveAction}
        icon={<ArchiveIcon />}
        onClick={() => endIfDone(archiveSessions(client, ids, !isArchive))}
      />
      <ToolbarButton
        label={words.delete}
        icon={<TrashIcon />}
        onClick={() => endIfDone(deleteSessions(client, ids))}
      />
      <ToolbarButton label={words.clearSelection} icon={<CloseIcon />} onClick={end} />
    </div>
  );
}

function ToolbarButton({ label, icon, onClick }: { label: string; icon: React.ReactNode; onClick: () => void }) {
  return (
    <button type="button" className="icon-button" title={label} aria-label={label} onClick={onClick}>
      {icon}
    </button>
  );
}
