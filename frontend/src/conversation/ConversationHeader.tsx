/** The header of a conversation: title, platform, meter, model, profile, tools and menu. */
import { useState } from "react";
import { ProfileMenu } from "../agent/ProfileMenu";
import type { Session } from "../api/types";
import { SidebarButton } from "../layout/SidebarButton";
import { useLiveClient, useMe } from "../live/context";
import { updateSessions } from "../sessions/actions";
import { getSessionName } from "../sessions/names";
import { SessionMenu } from "../sessions/SessionMenu";
import { TitleField } from "../sessions/TitleField";
import { PlatformBadge } from "../ui/PlatformBadge";
import { words } from "../words";
import { ContextMeter, MeterMenuLines } from "./ContextMeter";
import { ModelMenu } from "./ModelMenu";
import { ToolsMenu } from "./ToolsMenu";

export function ConversationHeader({ session, canAct }: { session: Session; canAct: boolean }) {
  const client = useLiveClient();
  const me = useMe();
  const [isRenaming, setRenaming] = useState(false);
  const name = getSessionName(session);
  return (
    <header className="bar">
      <SidebarButton />
      {session.platform !== "web" && <PlatformBadge platform={session.platform} />}
      {isRenaming ? (
        <TitleField
          title={session.title ?? ""}
          onDone={(title) => {
            setRenaming(false);
            if (title !== null) void updateSessions(client, [session.id], { title: title === "" ? null : title });
          }}
        />
      ) : (
        <h1 className="bar-title" dir="auto">
          <button type="button" title={words.rename} onClick={() => setRenaming(true)}>
            {name}
          </button>
        </h1>
      )}
      {session.owner_name !== null && session.owner_name !== me.person.name && (
        <span className="tag">{words.ownedBy(session.owner_name)}</span>
      )}
      <span className="spacer" />
      <ContextMeter session={session} canAct={canAct} />
      {canAct && <ModelMenu session={session} />}
      {canAct && me.person.role !== "guest" && (
        <>
          <ProfileMenu choices={session} onChange={(changes) => updateSessions(client, [session.id], changes)} />
          <ToolsMenu session={session} />
        </>
      )}
      <SessionMenu
        session={session}
        onRename={() => setRenaming(true)}
        info={<MeterMenuLines session={session} />}
        isInHeader
        canAct={canAct}
      />
    </header>
  );
}
