/** The head of a conversation: its title, where it takes place, who answers, what it costs, and what can be done. */
import { useState } from "react";
import type { Session } from "../api/types";
import { useCenter, useMe } from "../live/context";
import { MenuButton } from "../shell/MenuButton";
import { SessionMenu } from "../sidebar/SessionMenu";
import { PlatformBadge } from "../ui/PlatformBadge";
import { nameOf } from "../sidebar/naming";
import { words } from "../words";
import { change } from "./actions";
import { MeterLines, Meters } from "./Meters";
import { ModelMenu } from "./ModelMenu";
import { TitleField } from "./TitleField";
import { ToolsMenu } from "./ToolsMenu";

export function Header({ session, mayAct }: { session: Session; mayAct: boolean }) {
  const center = useCenter();
  const me = useMe();
  const [isNaming, setNaming] = useState(false);
  const name = nameOf(session);
  return (
    <header className="bar">
      <MenuButton />
      {session.platform !== "web" && <PlatformBadge platform={session.platform} />}
      {isNaming ? (
        <TitleField
          title={session.title ?? ""}
          onDone={(title) => {
            setNaming(false);
            if (title !== null) void change(center, [session.id], { title: title === "" ? null : title });
          }}
        />
      ) : (
        <h1 className="bar-title" dir="auto">
          <button type="button" title={words.rename} onClick={() => setNaming(true)}>
            {name}
          </button>
        </h1>
      )}
      {session.owner !== null && session.owner !== me.person.name && (
        <span className="tag">{words.ofOwner(session.owner)}</span>
      )}
      <span className="grow" />
      <Meters session={session} mayAct={mayAct} />
      {mayAct && <ModelMenu session={session} />}
      {mayAct && me.person.role !== "guest" && <ToolsMenu session={session} />}
      <SessionMenu
        session={session}
        onRename={() => setNaming(true)}
        about={<MeterLines session={session} />}
        inHeader
        mayAct={mayAct}
      />
    </header>
  );
}
