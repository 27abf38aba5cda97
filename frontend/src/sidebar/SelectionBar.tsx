/** What can be done with all that is selected. Where something was refused, it stays selected. */
import { useEffect } from "react";
import { archive, change, move, remove } from "../conversation/actions";
import { useCenter, useSessions } from "../live/context";
import { ArchiveIcon, CloseIcon, FolderIcon, PinIcon, TrashIcon } from "../ui/icons";
import { Menu, MenuItem } from "../ui/Menu";
import { words } from "../words";
import type { Selection } from "./useSelection";
import { useProjects } from "./useProjects";

export function SelectionBar({ selection, isArchive }: { selection: Selection; isArchive: boolean }) {
  const center = useCenter();
  const projects = useProjects();
  const sessions = useSessions();
  const { end } = selection;
  const ids = [...selection.ids].filter((id) => sessions.has(id));
  const isEmpty = ids.length === 0; // all of them were deleted elsewhere
  useEffect(() => {
    if (isEmpty) end();
  }, [isEmpty, end]);
  const then = (done: Promise<boolean>) => void done.then((worked) => worked && end());
  return (
    <div className="selection-bar" role="toolbar" aria-label={words.selected(ids.length)}>
      <span>{words.selected(ids.length)}</span>
      <span className="grow" />
      <Tool label={words.pin} icon={<PinIcon />} act={() => then(change(center, ids, { pinned: true }))} />
      <Menu
        button={
          <button type="button" className="icon-button" title={words.move} aria-label={words.move}>
            <FolderIcon />
          </button>
        }
      >
        <MenuItem onSelect={() => then(move(center, ids, null))}>{words.noProject}</MenuItem>
        {projects.map((project) => (
          <MenuItem key={project.id} onSelect={() => then(move(center, ids, project))}>
            {project.name}
          </MenuItem>
        ))}
      </Menu>
      <Tool
        label={isArchive ? words.unarchive : words.doArchive}
        icon={<ArchiveIcon />}
        act={() => then(archive(center, ids, !isArchive))}
      />
      <Tool
        label={words.delete}
        icon={<TrashIcon />}
        act={() => then(remove(center, ids))}
      />
      <Tool label={words.endSelection} icon={<CloseIcon />} act={end} />
    </div>
  );
}

function Tool({ label, icon, act }: { label: string; icon: React.ReactNode; act: () => void }) {
  return (
    <button type="button" className="icon-button" title={label} aria-label={label} onClick={act}>
      {icon}
    </button>
  );
}
