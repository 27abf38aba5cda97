/** What can be done with all that is selected. */
import { archive, change, move, remove } from "../conversation/actions";
import { useCenter } from "../live/context";
import { ArchiveIcon, CloseIcon, FolderIcon, PinIcon, TrashIcon } from "../ui/icons";
import { Menu, MenuItem } from "../ui/Menu";
import { words } from "../words";
import type { Selection } from "./useSelection";
import { useProjects } from "./useProjects";

export function SelectionBar({ selection, isArchive }: { selection: Selection; isArchive: boolean }) {
  const center = useCenter();
  const projects = useProjects();
  const ids = [...selection.ids];
  const then = (done: Promise<unknown>) => void done.then(selection.end);
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
        act={() => void remove(center, ids).then((done) => done && selection.end())}
      />
      <Tool label={words.endSelection} icon={<CloseIcon />} act={selection.end} />
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
