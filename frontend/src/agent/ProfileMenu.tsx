/** The menu that chooses the profile, the personality and the workspace of a conversation. */
import { useState } from "react";
import type { Profiles, SessionChoices } from "../api/types";
import { CloseIcon, FolderIcon, UserIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices, MenuItem, MenuLabel, MenuSeparator, SubMenu } from "../ui/Menu";
import { NameDialog } from "../ui/NameDialog";
import { words } from "../words";
import { ProfilePicture } from "./ProfilePicture";
import { findProfile, getProfileTitle, useProfiles } from "./profiles";
import "./agent.css";

const NONE = "";
const MAX_WORKSPACE_CHARS = 240;

interface Props {
  choices: SessionChoices;
  onChange: (changes: Partial<SessionChoices>) => unknown;
  isLabeled?: boolean; // where it stands alone, its icon is not enough
}

export function ProfileMenu({ choices, onChange, isLabeled = false }: Props) {
  const [isEditing, setEditing] = useState(false);
  const profiles = useProfiles();
  if (profiles === undefined) return null;
  const label = describeChoices(profiles, choices);
  const hasProfiles = profiles.profiles.length + profiles.personalities.length > 0 || choices.profile !== null;
  const text = nameProfile(profiles, choices.profile) ?? (isLabeled ? (hasProfiles ? words.profile : words.workspace) : null);
  return (
    <>
      <Menu
        align={isLabeled ? "start" : "end"}
        button={
          <button type="button" className="chip-button" title={label} aria-label={label}>
            {hasProfiles ? <ProfileIcon profiles={profiles} name={choices.profile} /> : <FolderIcon />}
            {text !== null && <span className="model-name">{text}</span>}
          </button>
        }
      >
        <ProfileItems choices={choices} onChange={onChange} onEditWorkspace={() => setEditing(true)} />
      </Menu>
      {isEditing && <WorkspaceDialog choices={choices} onChange={onChange} onClose={() => setEditing(false)} />}
    </>
  );
}

interface ItemsProps extends Omit<Props, "isLabeled"> {
  onEditWorkspace: () => void;
}

/** The same as a part of another menu, which shows `WorkspaceDialog` when it is asked to: the menu itself closes. */
export function ProfileSubMenu(props: ItemsProps) {
  const profiles = useProfiles();
  if (profiles === undefined) return null;
  return (
    <SubMenu icon={<ProfileIcon profiles={profiles} name={props.choices.profile} />} label={describeChoices(profiles, props.choices)}>
      <ProfileItems {...props} />
    </SubMenu>
  );
}

function ProfileIcon({ profiles, name }: { profiles: Profiles; name: string | null }) {
  const picture = findProfile(profiles, name)?.picture ?? null;
  return picture === null ? <UserIcon /> : <ProfilePicture url={picture} />;
}

/** The name of a profile for people, also if the server no longer has it. */
function nameProfile(profiles: Profiles, name: string | null): string | null {
  const profile = findProfile(profiles, name);
  return profile === undefined ? name : getProfileTitle(profile);
}

function describeChoices(profiles: Profiles, { profile, personality, workspace }: SessionChoices): string {
  const chosen = [nameProfile(profiles, profile), personality, workspace].filter((each) => each !== null);
  return chosen.length === 0 ? words.profileMenu : words.profileMenuLabel(chosen.join(", "));
}

function ProfileItems({ choices: { profile, personality, workspace }, onChange, onEditWorkspace }: ItemsProps) {
  const data = useProfiles();
  if (data === undefined) return null;
  const known = data.profiles.map((each) => ({ name: each.name, title: getProfileTitle(each), hint: each.description, picture: each.picture }));
  const profiles = addMissing(known, profile);
  const personalities = addMissing(data.personalities.map((each) => ({ name: each.name, hint: each.instructions })), personality);
  return (
    <>
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
      <MenuItem icon={<FolderIcon />} onSelect={onEditWorkspace}>
        <span dir="auto">{workspace ?? words.setWorkspace}</span>
      </MenuItem>
      {workspace !== null && (
        <MenuItem icon={<CloseIcon />} onSelect={() => onChange({ workspace: null })}>
          {words.removeWorkspace}
        </MenuItem>
      )}
    </>
  );
}

export function WorkspaceDialog({ choices: { workspace }, onChange, onClose }: Omit<Props, "isLabeled"> & { onClose: () => void }) {
  return (
    <NameDialog
      title={words.setWorkspace}
      label={words.workspaceField}
      name={workspace ?? ""}
      maxLength={MAX_WORKSPACE_CHARS}
      onClose={onClose}
      onDone={async (text) => {
        await onChange({ workspace: text });
        onClose();
      }}
    />
  );
}

interface Choice {
  name: string;
  title?: string; // if it has another name for people
  hint: string;
  picture?: string | null;
}

function Choices(props: { label: string; none: string; value: string | null; choices: Choice[]; onChange: (name: string | null) => unknown }) {
  return (
    <MenuChoices label={props.label} value={props.value ?? NONE} onChange={(value) => void props.onChange(value === NONE ? null : value)}>
      <MenuChoice value={NONE}>{props.none}</MenuChoice>
      {props.choices.map(({ name, title = name, hint, picture = null }) => (
        <MenuChoice key={name} value={name} {...(hint !== "" && { hint })}>
          <span className="profile-name" dir="auto">
            {picture !== null && <ProfilePicture url={picture} />}
            {title}
          </span>
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
