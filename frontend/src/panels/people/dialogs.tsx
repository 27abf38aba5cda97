/** The dialog that invites a person, and the one that shows their sign-in link. */
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { formatDateTime } from "../../format/time";
import { useMe } from "../../live/context";
import { Dialog } from "../../ui/Dialog";
import { NameDialog } from "../../ui/NameDialog";
import { words } from "../../words";
import type { Invitation, Role } from "../shared/calls";
import * as calls from "../shared/calls";
import { SecretField } from "../shared/SecretField";

export function InviteDialog({ onClose, onInvited }: { onClose: () => void; onInvited: (invitation: Invitation) => void }) {
  const [role, setRole] = useState<Role>("member");
  const roles: [Role, string, string][] = [
    ["member", words.roleMember, words.roleMemberHint],
    ["owner", words.roleOwner, words.roleOwnerHint],
  ];
  return (
    <NameDialog
      title={words.peopleInvite}
      label={words.personName}
      action={words.peopleInvite}
      onClose={onClose}
      onDone={(name) => attempt(async () => onInvited(await calls.invitePerson(name, role)))}
    >
      <fieldset className="options">
        <legend>{words.personRole}</legend>
        {roles.map(([each, label, hint]) => (
          <label key={each} className="option">
            <input type="radio" name="role" checked={role === each} onChange={() => setRole(each)} />
            <span>
              {label}
              <small>{hint}</small>
            </span>
          </label>
        ))}
      </fieldset>
    </NameDialog>
  );
}

export function LinkDialog({ invitation, text, onClose }: { invitation: Invitation; text: string; onClose: () => void }) {
  const me = useMe();
  return (
    <Dialog label={words.signInLink} onClose={onClose}>
      <h2>{words.signInLink}</h2>
      <p>{text}</p>
      {invitation.link.is_local_only && (
        <p className="link-notice">
          {words.linkLocalOnly} <code>{me.command} serve --host 0.0.0.0</code> {words.linkLocalOnlyProxy}
        </p>
      )}
      <SecretField label={`${words.signInLink} · ${words.expires(formatDateTime(invitation.link.expires_at))}`} text={invitation.link.url} />
      <div className="dialog-actions">
        <button type="button" className="button primary" onClick={onClose}>
          {words.done}
        </button>
      </div>
    </Dialog>
  );
}
