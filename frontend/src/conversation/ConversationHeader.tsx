/** The header of a conversation: title, platform, meter, model, profile, tools and menu. On a phone most of it is in the menu. */
import { useRef, useState } from "react";
import { ProfileMenu, ProfileSubMenu, WorkspaceDialog } from "../agent/ProfileMenu";
import type { Session, SessionChoices } from "../api/types";
import { SidebarButtons } from "../layout/SidebarButtons";
import { isNarrow } from "../layout/sidebarVisibility";
import { useStore } from "../lib/store";
import { useLiveClient, useMe } from "../live/context";
import { updateSessions } from "../sessions/actions";
import { getSessionName } from "../sessions/names";
import { SessionMenu } from "../sessions/SessionMenu";
import { TitleField } from "../sessions/TitleField";
import { MenuSeparator } from "../ui/Menu";
import { PlatformBadge } from "../ui/PlatformBadge";
import { words } from "../words";
import { BudgetMeter } from "./BudgetMeter";
import { ContextMeter, MeterMenuLines } from "./ContextMeter";
import { ModelMenu, ModelSubMenu } from "./ModelMenu";
import { ToolsMenu, ToolsSubMenu } from "./ToolsMenu";
import "./ConversationHeader.css";

export function ConversationHeader({ session, canAct }: { session: Session; canAct: boolean }) {
  const client = useLiveClient();
  const me = useMe();
  const [isRenaming, setRenaming] = useState(false);
  const titleButton = useRef<HTMLButtonElement>(null);
  const [isEditingWorkspace, setEditingWorkspace] = useState(false);
  const isPhone = useStore(isNarrow); // its header has room for the title only
  const name = getSessionName(session);
  const canChoose = canAct && me.person.role !== "guest";
  const change = (changes: Partial<SessionChoices>) => updateSessions(client, [session.id], changes);
  return (
    <header className="bar">
      <SidebarButtons />
      {session.platform !== "web" && <PlatformBadge platform={session.platform} />}
      {isRenaming ? (
        <TitleField
          title={session.title ?? ""}
          onDone={(title) => {
            setRenaming(false);
            requestAnimationFrame(() => document.activeElement === document.body && titleButton.current?.focus());
            if (title !== null) void updateSessions(client, [session.id], { title: title === "" ? null : title });
          }}
        />
      ) : (
        <h1 className="bar-title" dir="auto">
          <button ref={titleButton} type="button" title={words.rename} onClick={() => setRenaming(true)}>
            {name}
          </button>
        </h1>
      )}
      {session.owner_name !== null && session.owner_name !== me.person.name && (
        <span className="tag">{words.ownedBy(session.owner_name)}</span>
      )}
      <span className="spacer" />
      {canAct && <BudgetMeter session={session} />}
      <ContextMeter session={session} canAct={canAct} />
      {canAct && !isPhone && <ModelMenu session={session} />}
      {canChoose && !isPhone && (
        <>
          <ProfileMenu choices={session} onChange={change} />
          <ToolsMenu session={session} />
        </>
      )}
      <SessionMenu
        session={session}
        onRename={() => setRenaming(true)}
        info={
          <>
            <MeterMenuLines session={session} />
            {isPhone && canAct && (
              <>
                <ModelSubMenu session={session} />
                {canChoose && (
                  <>
                    <ProfileSubMenu choices={session} onChange={change} onEditWorkspace={() => setEditingWorkspace(true)} />
                    <ToolsSubMenu session={session} />
                  </>
                )}
                <MenuSeparator />
              </>
            )}
          </>
        }
        isInHeader
        canAct={canAct}
      />
      {isEditingWorkspace && <WorkspaceDialog choices={session} onChange={change} onClose={() => setEditingWorkspace(false)} />}
    </header>
  );
}
