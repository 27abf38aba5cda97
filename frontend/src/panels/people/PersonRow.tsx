/** One person, and what the owner can do about them. */
import { useState } from "react";
import { attempt } from "../../conversation/actions";
import { ago } from "../../lib/time";
import { confirm } from "../../ui/confirm";
import { DotsIcon, EditIcon, LinkIcon, TrashIcon } from "../../ui/icons";
import { Menu, MenuChoice, MenuChoices, MenuItem, MenuLine } from "../../ui/Menu";
import { NameDialog } from "../../ui/NameDialog";
import { PlatformBadge } from "../../ui/PlatformBadge";
import { toast } from "../../ui/toasts";
import { words } from "../../words";
import * as calls from "../calls";
import type { Invited, Member, Role } from "../calls";

interface Props {
  member: Member;
  isMe: boolean;
  onChanged: () => Promise<unknown>;
  onLink: (made: Invited) => void;
}

export function PersonRow({ member, isMe, onChanged, onLink }: Props) {
  const [isNaming, setNaming] = useState(false);
  const { id, name } = member;
  const change = (changes: { name?: string; role?: Role }) => attempt(() => calls.changePerson(id, changes)).finally(() => void onChanged());
  const remove = async () => {
    const question = { title: words.removePersonTitle(name), text: words.removePersonText, action: words.removePerson };
    if (!(await confirm(question))) return;
    if (await attempt(() => calls.removePerson(id))) toast(words.personRemoved(name));
    await onChanged();
  };
  return (
    <li className="card-row">
      <span className="initial" aria-hidden="true">
        {initialOf(name)}
      </span>
      <div className="card-row-text">
        <b dir="auto">
          {name}
          {isMe && <span className="tag">{words.personYou}</span>}
        </b>
        <small>
          {roleName(member.role)} · {presence(member)}
        </small>
      </div>
      <span className="badges">
        {member.platforms.filter(isElsewhere).map((platform) => (
          <PlatformBadge key={platform} platform={platform} />
        ))}
      </span>
      <Menu
        button={
          <button type="button" className="icon-button" title={words.more} aria-label={words.actionsFor(name)}>
            <DotsIcon />
          </button>
        }
      >
        {member.role !== "guest" && (
          <MenuItem icon={<LinkIcon />} onSelect={() => void attempt(async () => onLink(await calls.linkFor(id))).then(onChanged)}>
            {words.newLink}
          </MenuItem>
        )}
        <MenuItem icon={<EditIcon />} onSelect={() => setNaming(true)}>
          {words.renamePerson}
        </MenuItem>
        {!member.at_terminal && (
          <>
            <MenuLine />
            <MenuChoices label={words.personRole} value={member.role} onChange={(role) => void change({ role: role as Role })}>
              <MenuChoice value="owner" hint={words.roleOwnerHint}>
                {words.roleOwner}
              </MenuChoice>
              <MenuChoice value="member" hint={words.roleMemberHint}>
                {words.roleMember}
              </MenuChoice>
              <MenuChoice value="guest" hint={words.roleGuestHint}>
                {words.roleGuest}
              </MenuChoice>
            </MenuChoices>
            {member.role !== "guest" && (
              <>
                <MenuLine />
                <MenuItem icon={<TrashIcon />} danger onSelect={() => void remove()}>
                  {words.removePerson}
                </MenuItem>
              </>
            )}
          </>
        )}
      </Menu>
      {isNaming && (
        <NameDialog
          title={words.renamePerson}
          label={words.personName}
          name={name}
          onClose={() => setNaming(false)}
          onDone={(changed) => change({ name: changed }).then((worked) => worked && setNaming(false))}
        />
      )}
    </li>
  );
}

/** Everybody who can sign in is known on the web and to the API; that goes without saying. */
function isElsewhere(platform: string): boolean {
  return platform !== "web" && platform !== "api";
}

function roleName(role: Role): string {
  return { owner: words.roleOwner, member: words.roleMember, guest: words.roleGuest }[role];
}

function presence(member: Member): string {
  if (member.seen_at !== null) return words.lastSeen(ago(member.seen_at));
  if (member.ways === null) return member.at_terminal ? words.personTerminal : words.personCannot;
  return words.personNotYet;
}

function initialOf(name: string): string {
  const [first] = new Intl.Segmenter().segment(name.trim());
  return first?.segment.toUpperCase() ?? "?";
}
