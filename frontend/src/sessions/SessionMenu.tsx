/** The menu of one conversation. */
import type { ReactNode } from "react";
import * as calls from "../api/calls";
import { download } from "../api/download";
import type { Session } from "../api/types";
import { openShareDialog } from "../layout/dialogs";
import { useLiveClient } from "../live/context";
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
import { Menu, MenuChoice, MenuChoices, MenuItem, MenuSeparator, SubMenu } from "../ui/Menu";
import { words } from "../words";
import {
  archiveSessions,
  compactSession,
  deleteSessions,
  forkSession,
  moveSessions,
  redoTurn,
  undoTurn,
  updateSessions,
} from "./actions";
import { getSessionName } from "./names";
import { useProjects } from "./useProjects";

interface Props {
  session: Session;
  onRename: () => void;
  onSelect?: () => void;
  info?: ReactNode; // shown above the items
  isInHeader?: boolean; // of the conversation; there are more items then
  canAct?: boolean;
}

export function SessionMenu({ session, onRename, onSelect, info, isInHeader = false, canAct = true }: Props) {
  const label = words.actionsFor(getSessionName(session));
  return (
    <Menu
      button={
        <button type="button" className={isInHeader ? "icon-button" : "icon-button small"} title={words.more} aria-label={label}>
          <DotsIcon />
        </button>
      }
    >
      {info}
      <SessionMenuItems session={session} onRename={onRename} onSelect={onSelect} isInHeader={isInHeader} canAct={canAct} />
    </Menu>
  );
}

/** Rendered only while the menu is open. */
function SessionMenuItems({
  session,
  onRename,
  onSelect,
  isInHeader,
  canAct,
}: Omit<Props, "onSelect" | "info"> & { onSelect: (() => void) | undefined }) {
  const client = useLiveClient();
  const projects = useProjects();
  const { id } = session;
  return (
    <>
      {isInHeader && canAct && (
        <>
          <MenuItem icon={<UndoIcon />} onSelect={() => void undoTurn(id)} disabled={session.running}>
            {words.undoTurn}
          </MenuItem>
          <MenuItem icon={<RedoIcon />} onSelect={() => void redoTurn(id)} disabled={session.running}>
            {words.redoTurn}
          </MenuItem>
          <MenuItem icon={<SparkIcon />} onSelect={() => void compactSession(id)}>
            {words.compactContext}
          </MenuItem>
          <MenuSeparator />
        </>
      )}
      {/* Waits until the menu has returned the focus, so that the title field keeps it. */}
      <MenuItem icon={<EditIcon />} onSelect={() => setTimeout(onRename, 0)}>
        {words.rename}
      </MenuItem>
      <MenuItem icon={<PinIcon />} onSelect={() => void updateSessions(client, [id], { pinned: !session.pinned })}>
        {session.pinned ? words.unpin : words.pin}
      </MenuItem>
      <SubMenu icon={<FolderIcon />} label={words.moveTo}>
        <MenuChoices
          value={session.project_id ?? ""}
          onChange={(value) => void moveSessions(client, [id], projects.find((project) => project.id === value) ?? null)}
        >
          <MenuChoice value="">{words.noProject}</MenuChoice>
          {projects.map((project) => (
            <MenuChoice key={project.id} value={project.id}>
              {project.name}
            </MenuChoice>
          ))}
        </MenuChoices>
      </SubMenu>
      <MenuItem icon={<ArchiveIcon />} onSelect={() => void archiveSessions(client, [id], !session.archived)}>
        {session.archived ? words.unarchive : words.archiveAction}
      </MenuItem>
      {canAct && (
        <MenuItem icon={<BranchIcon />} onSelect={() => void forkSession(client, id, null)}>
          {words.branchFromHere}
        </MenuItem>
      )}
      {isInHeader && (
        <>
          <MenuSeparator />
          <MenuItem icon={<LinkIcon />} onSelect={() => setTimeout(() => openShareDialog(id), 0)}>
            {words.share}
          </MenuItem>
          <MenuItem icon={<DownloadIcon />} onSelect={() => download(calls.buildExportUrl(id, "markdown"))}>
            {words.exportMarkdown}
          </MenuItem>
          <MenuItem icon={<DownloadIcon />} onSelect={() => download(calls.buildExportUrl(id, "html"))}>
            {words.exportHtml}
          </MenuItem>
          <MenuItem icon={<DownloadIcon />} onSelect={() => download(calls.buildExportUrl(id, "jsonl"))}>
            {words.exportJsonl}
          </MenuItem>
        </>
      )}
      {onSelect !== undefined && (
        <MenuItem icon={<SelectIcon />} onSelect={onSelect}>
          {words.select}
        </MenuItem>
      )}
      <MenuSeparator />
      <MenuItem icon={<TrashIcon />} danger onSelect={() => void deleteSessions(client, [id])}>
        {words.delete}
      </MenuItem>
    </>
  );
}
