/** The menu that chooses the profile, the personality and the workspace of a conversation. */
import { useState } from "react";
import type { SessionChoices } from "../api/types";
import { CloseIcon, FolderIcon, UserIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices, MenuItem, MenuLabel, MenuSeparator } from "../ui/Menu";
import { NameDialog } from "../ui/NameDialog";
import { words } from "../words";
import { useProfiles } from "./profiles";

const NONE = "";
const MAX_WORKSPACE_CHARS = 240;

interface Props {
  choices: SessionChoices;
  onChange: (changes: Partial<SessionChoices>) => unknown;
  isLabeled?: boolean; // where it stands alone, its icon is not enough
}

export function ProfileMenu({ choices: { profile, personality, workspace }, onChange, isLabeled = false }: Props) {
  const data = useProfiles();
  const [isEditing, setEditing] = useState(false);
  if (data === undefined) return null;
  const chosen = [profile, personality, workspace].filter((each) => each !== null);
  const label = chosen.length === 0 ? words.profileMenu : words.profileMenuLabel(chosen.join(", "));
  const profiles = addMissing(data.profiles.map((each) => ({ name: each.name, hint: each.description })), profile);
  const personalities = addMissing(data.personalities.map((each) => ({ name: each.name, hint: each.instructions })), personality);
  const text = profile ?? (isLabeled ? words.profile : null);
  return (
    <>
      <Menu
        align={isLabeled ? "start" : "end"}
        button={
          <button type="button" className="chip-button" title={label} aria-label={label}>
            <UserIcon />
            {text !== null && <span className="model-name">{text}</span>}
          </button>
        }
      >
        {profiles.length > 0 && (
          <Choices
            label={words.profile}
            none={words.defaultProfile}
            value={profile}
            choices={profiles}
            onChange={(name) => onChange({ profile: name })}
          />
        )}
        {personalities.length > 0 && (
          <Choices
            label={words.personality}
            none={words.noPersonality}
            value={personality}
            choices={personalities}
            onChange={(name) => onChange({ personality: name })}
          />
        )}
        {profiles.length + personalities.length > 0 && <MenuSeparator />}
        <MenuLabel>{words.workspace}</MenuLabel>
        <MenuItem icon={<FolderIcon />} onSelect={() => setEditing(true)}>
          <span dir="auto">{workspace ?? words.setWorkspace}</span>
        </MenuItem>
        {workspace !== null && (
          <MenuItem icon={<CloseIcon />} onSelect={() => onChange({ workspace: null })}>
            {words.removeWorkspace}
          </MenuItem>
        )}
      </Menu>
      {isEditing && (
        <NameDialog
          title={words.setWorkspace}
          label={words.workspaceField}
          name={workspace ?? ""}
          maxLength={MAX_WORKSPACE_CHARS}
          onClose={() => setEditing(false)}
          onDone={async (text) => {
            await onChange({ workspace: text });
            setEditing(false);
          }}
        />
      )}
    </>
  );
}

interface Choice {
  name: string;
  hint: string;
}

function Choices(props: { label: string; none: string; value: string | null; choices: Choice[]; onChange: (name: string | null) => unknown }) {
  return (
    <MenuChoices label={props.label} value={props.value ?? NONE} onChange={(value) => void props.onChange(value === NONE ? null : value)}>
      <MenuChoice value={NONE}>{props.none}</MenuChoice>
      {props.choices.map(({ name, hint }) => (
        <MenuChoice key={name} value={name} {...(hint !== "" && { hint })}>
          {name}
        </MenuChoice>
      ))}
    </MenuChoices>
  );
}

/** Adds the chosen one, if the server no longer has it. */
function addMissing(choices: Choice[], chosen: string | null): Choice[] {
  if (chosen === null || choices.some((choice) => choice.name === chosen)) return choices;
  return [...choices, { name: chosen, hint: words.choiceMissing }];
}
