/** One person, with a menu for the owner. */
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { getPlatformName } from "../../format/platforms";
import { formatRecent } from "../../format/time";
import { confirm } from "../../ui/ConfirmDialog";
import { CloseIcon, DotsIcon, EditIcon, LinkIcon, TrashIcon } from "../../ui/icons";
import { Menu, MenuChoice, MenuChoices, MenuItem, MenuSeparator } from "../../ui/Menu";
import { NameDialog } from "../../ui/NameDialog";
import { PlatformBadge } from "../../ui/PlatformBadge";
import { toast } from "../../ui/toasts";
import { words } from "../../words";
import type { ChatAccount, Invitation, Member, Role } from "../shared/calls";
import * as calls from "../shared/calls";
import { getRoleName } from "../shared/roleNames";
import { EraseDialog } from "./EraseDialog";

interface Props {
  member: Member;
  isMe: boolean;
  onChange: () => Promise<unknown>;
  onLink: (invitation: Invitation) => void;
}

export function PersonRow({ member, isMe, onChange, onLink }: Props) {
  const [isRenaming, setRenaming] = useState(false);
  const [isErasing, setErasing] = useState(false);
  const { id, name } = member;
  const update = (changes: { name?: string; role?: Role }) => attempt(() => calls.updatePerson(id, changes)).finally(() => void onChange());
  const remove = async () => {
    const question = { title: words.removePersonTitle(name), text: words.removePersonText, action: words.removePerson };
    if (!(await confirm(question))) return;
    if (await attempt(() => calls.removePerson(id))) toast(words.personRemoved(name));
    await onChange();
  };
  const unlink = async (account: ChatAccount) => {
    const platform = getPlatformName(account.platform);
    const question = { title: words.unlinkTitle(platform, name), text: words.unlinkText(account.account), action: words.unlinkAction };
    if (!(await confirm(question))) return;
    if (await attempt(() => calls.unlinkAccount(id, account))) toast(words.accountUnlinked(platform, name));
    await onChange();
  };
  const canUnlink = member.sign_in_methods !== null || member.chat_accounts.length > 1 || member.uses_terminal;
  return (
    <li className="card-row">
      <span className="avatar" aria-hidden="true">
        {getInitial(name)}
      </span>
      <div className="card-row-text">
        <b dir="auto">
          {name}
          {isMe && <span className="tag">{words.personYou}</span>}
        </b>
        <small>
          {getRoleName(member.role)} · {describePresence(member)}
        </small>
      </div>
      <span className="badges">
        {member.platforms.filter(isChatPlatform).map((platform) => (
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
          <MenuItem icon={<LinkIcon />} onSelect={() => void attempt(async () => onLink(await calls.createSignInLink(id))).then(onChange)}>
            {words.newLink}
          </MenuItem>
        )}
        <MenuItem icon={<EditIcon />} onSelect={() => setRenaming(true)}>
          {words.renamePerson}
        </MenuItem>
        {canUnlink &&
          member.chat_accounts.map((account) => (
            <MenuItem key={`${account.platform}:${account.account}`} icon={<CloseIcon />} onSelect={() => void unlink(account)}>
              <span className="menu-text">
                {words.unlinkAccount(getPlatformName(account.platform))}
                <small>{account.account}</small>
              </span>
            </MenuItem>
          ))}
        {!member.uses_terminal && (
          <>
            <MenuSeparator />
            <MenuChoices label={words.personRole} value={member.role} onChange={(role) => void update({ role: role as Role })}>
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
            <MenuSeparator />
            {member.role !== "guest" && (
              <MenuItem icon={<CloseIcon />} danger onSelect={() => void remove()}>
                {words.removePerson}
              </MenuItem>
            )}
            <MenuItem icon={<TrashIcon />} danger onSelect={() => setErasing(true)}>
              {words.erasePerson}
            </MenuItem>
          </>
        )}
      </Menu>
      {isErasing && <EraseDialog id={id} name={name} onClose={() => setErasing(false)} onErased={onChange} />}
      {isRenaming && (
        <NameDialog
          title={words.renamePerson}
          label={words.personName}
          name={name}
          onClose={() => setRenaming(false)}
          onDone={(newName) => update({ name: newName }).then((worked) => worked && setRenaming(false))}
        />
      )}
    </li>
  );
}

/** Everybody who can sign in can use the web and the API, so those are not shown. */
function isChatPlatform(platform: string): boolean {
  return platform !== "web" && platform !== "api";
}

function describePresence(member: Member): string {
  if (member.last_seen_at !== null) return words.lastSeen(formatRecent(member.last_seen_at));
  if (member.sign_in_methods === null) return member.uses_terminal ? words.personUsesTerminal : words.personCannotSignIn;
  return words.personNeverSignedIn;
}

function getInitial(name: string): string {
  const [first] = new Intl.Segmenter().segment(name.trim());
  return first?.segment.toUpperCase() ?? "?";
}
