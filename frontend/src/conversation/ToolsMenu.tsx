/** The menu with a switch for each toolset of a conversation: a button of its own, or a part of the conversation's menu. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { Session, Toolset } from "../api/types";
import { useLiveClient } from "../live/context";
import { updateSessions } from "../sessions/actions";
import { ToolIcon, UndoIcon } from "../ui/icons";
import { Menu, MenuItem, MenuLabel, MenuNote, MenuSeparator, MenuSwitch, SubMenu } from "../ui/Menu";
import { words } from "../words";
import { getToolsetName } from "./toolsets";

export function ToolsMenu({ session }: { session: Session }) {
  const { disabled_toolsets: off } = session;
  const label = off.length === 0 ? words.tools : words.toolsLabel(off.map(getToolsetName).join(", "));
  return (
    <Menu
      button={
        <button type="button" className="icon-button tools-button" data-has-disabled={off.length > 0} title={label} aria-label={label}>
          <ToolIcon />
        </button>
      }
    >
      <MenuLabel>{words.tools}</MenuLabel>
      <ToolsetSwitches session={session} />
    </Menu>
  );
}

export function ToolsSubMenu({ session }: { session: Session }) {
  return (
    <SubMenu icon={<ToolIcon />} label={words.tools}>
      <ToolsetSwitches session={session} />
    </SubMenu>
  );
}

/** Loaded only while the menu is open. */
function ToolsetSwitches({ session }: { session: Session }) {
  const client = useLiveClient();
  const { data } = useQuery({ queryKey: ["toolsets", session.id], queryFn: () => calls.listToolsets(session.id) });
  const off = new Set(session.disabled_toolsets);
  const toolsets = data?.toolsets ?? [];
  return (
    <>
      {data === undefined && <MenuNote isMuted>{words.loading}</MenuNote>}
      {data !== undefined && toolsets.length === 0 && <MenuNote isMuted>{words.noTools}</MenuNote>}
      {toolsets.map((toolset) => (
        <MenuSwitch
          key={toolset.name}
          checked={!off.has(toolset.name)}
          hint={describeToolset(toolset)}
          onChange={(isOn) => void updateSessions(client, [session.id], { toolsets: { [toolset.name]: isOn } })}
        >
          {getToolsetName(toolset.name)}
        </MenuSwitch>
      ))}
      {off.size > 0 && (
        <>
          <MenuSeparator />
          <MenuItem icon={<UndoIcon />} onSelect={() => void updateSessions(client, [session.id], { toolsets: null })}>
            {words.enableAllTools}
          </MenuItem>
        </>
      )}
    </>
  );
}

/** Palaver's own toolsets have an explanation; for others the tools are listed. */
function describeToolset({ name, tools }: Toolset): string {
  const explanation = words.toolsetHints[name];
  if (explanation !== undefined) return explanation;
  return tools.length === 0 ? words.toolServerUnreachable : tools.map(describeTool).join(", ");
}

function describeTool({ name, problem }: Toolset["tools"][number]): string {
  const label = name.replaceAll("_", " ");
  return problem === null ? label : words.toolNameTaken(label);
}
