/** Which tools the agent has in this conversation: a switch for each set of them. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { Session, Toolset } from "../api/types";
import { useCenter } from "../live/context";
import { ToolIcon, UndoIcon } from "../ui/icons";
import { Menu, MenuItem, MenuLabel, MenuLine, MenuNote, MenuSwitch } from "../ui/Menu";
import { words } from "../words";
import { change } from "./actions";
import { toolsetName } from "./toolsets";

export function ToolsMenu({ session }: { session: Session }) {
  const { toolsets_off: off } = session;
  const label = off.length === 0 ? words.tools : words.toolsOff(off.map(toolsetName).join(", "));
  return (
    <Menu
      button={
        <button type="button" className="icon-button tools-button" data-narrowed={off.length > 0} title={label} aria-label={label}>
          <ToolIcon />
        </button>
      }
    >
      <Switches session={session} />
    </Menu>
  );
}

/** Made, and asked for, only when the menu is open. */
function Switches({ session }: { session: Session }) {
  const center = useCenter();
  const { data } = useQuery({ queryKey: ["toolsets", session.id], queryFn: () => calls.toolsets(session.id) });
  const off = new Set(session.toolsets_off);
  const toolsets = data?.toolsets ?? [];
  return (
    <>
      <MenuLabel>{words.tools}</MenuLabel>
      {data === undefined && <MenuNote quiet>{words.loading}</MenuNote>}
      {data !== undefined && toolsets.length === 0 && <MenuNote quiet>{words.noTools}</MenuNote>}
      {toolsets.map((toolset) => (
        <MenuSwitch
          key={toolset.name}
          checked={!off.has(toolset.name)}
          hint={about(toolset)}
          onChange={(on) => void change(center, [session.id], { toolsets: { [toolset.name]: on } })}
        >
          {toolsetName(toolset.name)}
        </MenuSwitch>
      ))}
      {off.size > 0 && (
        <>
          <MenuLine />
          <MenuItem icon={<UndoIcon />} onSelect={() => void change(center, [session.id], { toolsets: null })}>
            {words.allToolsOn}
          </MenuItem>
        </>
      )}
    </>
  );
}

/** What is in a set: our own are explained, others list their tools. */
function about({ name, tools }: Toolset): string {
  const explained = words.toolsetHints[name];
  if (explained !== undefined) return explained;
  return tools.length === 0 ? words.serverAway : tools.map((tool) => tool.name.replaceAll("_", " ")).join(", ");
}
