/** Letting somebody in, and the link to send them. */
import { useState } from "react";
import { attempt } from "../../conversation/actions";
import { moment } from "../../lib/time";
import { Dialog } from "../../ui/Dialog";
import { words } from "../../words";
import * as calls from "../calls";
import type { Invited, Role } from "../calls";
import { Secret } from "../parts/Secret";

export function InviteDialog({ onClose, onInvited }: { onClose: () => void; onInvited: (made: Invited) => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("member");
  const roles: [Role, string, string][] = [
    ["member", words.roleMember, words.roleMemberHint],
    ["owner", words.roleOwner, words.roleOwnerHint],
  ];
  return (
    <Dialog label={words.peopleInvite} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void attempt(async () => onInvited(await calls.invite(name.trim(), role)));
        }}
      >
        <h2>{words.peopleInvite}</h2>
        <label className="field">
          {words.personName}
          <input value={name} dir="auto" autoFocus required maxLength={60} onChange={(event) => setName(event.target.value)} />
        </label>
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
        <div className="dialog-actions">
          <button type="button" className="button" onClick={onClose}>
            {words.cancel}
          </button>
          <button type="submit" className="button primary" disabled={name.trim() === ""}>
            {words.peopleInvite}
          </button>
        </div>
      </form>
    </Dialog>
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

export function RenameDialog(props: { name: string; onClose: () => void; onRename: (name: string) => void }) {
  const [name, setName] = useState(props.name);
  return (
    <Dialog label={words.renamePerson} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          props.onRename(name.trim());
        }}
      >
        <h2>{words.renamePerson}</h2>
        <label className="field">
          {words.personName}
          <input value={name} dir="auto" autoFocus required maxLength={60} onChange={(event) => setName(event.target.value)} />
        </label>
        <div className="dialog-actions">
          <button type="button" className="button" onClick={props.onClose}>
            {words.cancel}
          </button>
          <button type="submit" className="button primary" disabled={name.trim() === ""}>
            {words.save}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
