/** Letting somebody in, and the link to send them. */
import { useState } from "react";
import { attempt } from "../../conversation/actions";
import { moment } from "../../lib/time";
import { Dialog } from "../../ui/Dialog";
import { NameDialog } from "../../ui/NameDialog";
import { words } from "../../words";
import * as calls from "../calls";
import type { Invited, Role } from "../calls";
import { Secret } from "../parts/Secret";

export function InviteDialog({ onClose, onInvited }: { onClose: () => void; onInvited: (made: Invited) => void }) {
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
      onDone={(name) => attempt(async () => onInvited(await calls.invite(name, role)))}
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

export function LinkDialog({ made, text, onClose }: { made: Invited; text: string; onClose: () => void }) {
  return (
    <Dialog label={words.signInLink} onClose={onClose}>
      <h2>{words.signInLink}</h2>
      <p>{text}</p>
      <Secret label={`${words.signInLink} · ${words.expires(moment(made.link.expires_at))}`} text={made.link.url} />
      <div className="dialog-actions">
        <button type="button" className="button primary" onClick={onClose}>
          {words.done}
        </button>
      </div>
    </Dialog>
  );
}
