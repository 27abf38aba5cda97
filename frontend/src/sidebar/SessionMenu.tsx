/** What can be done with one conversation. */
import type { ReactNode } from "react";
import { address } from "../api/client";
import * as calls from "../api/calls";
import type { Session } from "../api/types";
import { archive, change, compress, fork, move, redo, remove, undo } from "../conversation/actions";
import { useCenter } from "../live/context";
import { openSharing } from "../panels/sharing/open";
import {
  ArchiveIcon,
  BranchIcon,
  DotsIcon,
  DownloadIcon,
  EditIcon,
  FolderIcon,
  LinkIcon,
  PinIcon,
  RedoIcon,
  SelectIcon,
  SparkIcon,
  TrashIcon,
  UndoIcon,
} from "../ui/icons";
import { Menu, MenuChoice, MenuChoices, MenuItem, MenuLine, SubMenu } from "../ui/Menu";
import { words } from "../words";
import { nameOf } from "./naming";
import { useProjects } from "./useProjects";

interface Props {
  session: Session;
  onRename: () => void;
  onSelect?: () => void;
  about?: ReactNode; // words about it, before what can be done
  inHeader?: boolean;
  mayAct?: boolean;
}

export function SessionMenu({ session, onRename, onSelect, about, inHeader = false, mayAct = true }: Props) {
  const label = words.actionsFor(nameOf(session));
  return (
    <Menu
      button={
        <button type="button" className={inHeader ? "icon-button" : "icon-button small"} title={words.more} aria-label={label}>
          <DotsIcon />
        </button>
      }
    >
      {about}
      <Items session={session} onRename={onRename} onSelect={onSelect} inHeader={inHeader} mayAct={mayAct} />
    </Menu>
  );
}

/** Made only when the menu is open. */
function Items({ session, onRename, onSelect, inHeader, mayAct }: Omit<Props, "onSelect" | "about"> & { onSelect: (() => void) | undefined }) {
  const center = useCenter();
  const projects = useProjects();
  const { id } = session;
  return (
    <>
      {inHeader && mayAct && (
        <>
          <MenuItem icon={<UndoIcon />} onSelect={() => void undo(id)} disabled={session.running}>
            {words.undo}
          </MenuItem>
          <MenuItem icon={<RedoIcon />} onSelect={() => void redo(id)} disabled={session.running}>
            {words.redoLast}
          </MenuItem>
          <MenuItem icon={<SparkIcon />} onSelect={() => void compress(id)}>
            {words.compress}
          </MenuItem>
          <MenuLine />
        </>
      )}
      {/* After the menu has given the focus back, so that the field keeps it. */}
      <MenuItem icon={<EditIcon />} onSelect={() => setTimeout(onRename, 0)}>
        {words.rename}
      </MenuItem>
      <MenuItem icon={<PinIcon />} onSelect={() => void change(center, [id], { pinned: !session.pinned })}>
        {session.pinned ? words.unpin : words.pin}
      </MenuItem>
      <SubMenu icon={<FolderIcon />} label={words.move}>
        <MenuChoices
          value={session.project_id ?? ""}
          onChange={(value) => void move(center, [id], projects.find((project) => project.id === value) ?? null)}
        >
          <MenuChoice value="">{words.noProject}</MenuChoice>
          {projects.map((project) => (
            <MenuChoice key={project.id} value={project.id}>
              {project.name}
            </MenuChoice>
          ))}
        </MenuChoices>
      </SubMenu>
      <MenuItem icon={<ArchiveIcon />} onSelect={() => void archive(center, [id], !session.archived)}>
        {session.archived ? words.unarchive : words.doArchive}
      </MenuItem>
      {mayAct && (
        <MenuItem icon={<BranchIcon />} onSelect={() => void fork(center, id, null)}>
          {words.forkHere}
        </MenuItem>
      )}
      {inHeader && (
        <>
          <MenuLine />
          <MenuItem icon={<LinkIcon />} onSelect={() => setTimeout(() => openSharing(id), 0)}>
            {words.share}
          </MenuItem>
          <MenuItem icon={<DownloadIcon />} onSelect={() => download(calls.exportPath(id, "markdown"))}>
            {words.exportMarkdown}
          </MenuItem>
          <MenuItem icon={<DownloadIcon />} onSelect={() => download(calls.exportPath(id, "json"))}>
            {words.exportJson}
          </MenuItem>
        </>
      )}
      {onSelect !== undefined && (
        <MenuItem icon={<SelectIcon />} onSelect={onSelect}>
          {words.select}
        </MenuItem>
      )}
      <MenuLine />
      <MenuItem icon={<TrashIcon />} danger onSelect={() => void remove(center, [id])}>
        {words.delete}
      </MenuItem>
    </>
  );
}

function download(path: string): void {
  const link = document.createElement("a");
  link.href = address(path);
  link.download = "";
  link.click();
}
