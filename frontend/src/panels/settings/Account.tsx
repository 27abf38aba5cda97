/** The name, time zone and password of the signed-in person. */
import { useState, type SubmitEvent } from "react";
import { MAX_NAME_CHARS, MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from "../../api/accountLimits";
import { attempt } from "../../api/attempt";
import * as calls from "../../api/accountCalls";
import type { Me } from "../../api/types";
import { useAccount } from "../../live/context";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import { TimezoneInput } from "../shared/TimezoneInput";

export function Account({ me }: { me: Me }) {
  return (
    <>
      <NameForm name={me.person.name} />
      <TimezoneForm timezone={me.person.timezone} serverTimezone={me.server_timezone} />
      <PasswordForm hasPassword={me.sign_in_methods.has_password} name={me.person.name} />
    </>
  );
}

function NameForm(props: { name: string }) {
  const [name, setName] = useState(props.name);
  const { refetch } = useAccount();
  const runOnce = useSingleFlight();
  const save = async () => {
    if (!(await attempt(() => calls.renameMe(name.trim())))) return;
    toast(words.nameSaved);
    await refetch();
  };
  return (
    <form className="setting-form" onSubmit={(event) => handleSubmit(event, () => runOnce(save))}>
      <label className="field">
        {words.yourName}
        <input value={name} dir="auto" required maxLength={MAX_NAME_CHARS} autoComplete="username" onChange={(event) => setName(event.target.value)} />
        <span className="hint">{words.yourNameHint}</span>
      </label>
      <button type="submit" className="button" disabled={name.trim() === "" || name.trim() === props.name}>
        {words.save}
      </button>
    </form>
  );
}

/** The time zone for what runs by the clock, such as jobs. Empty: that of the server. */
function TimezoneForm(props: { timezone: string | null; serverTimezone: string }) {
  const [timezone, setTimezone] = useState(props.timezone ?? "");
  const { refetch } = useAccount();
  const runOnce = useSingleFlight();
  const save = async () => {
    if (!(await attempt(() => calls.setTimezone(timezone.trim() || null)))) return;
    toast(words.timezoneSaved);
    await refetch();
  };
  return (
    <form className="setting-form" onSubmit={(event) => handleSubmit(event, () => runOnce(save))}>
      <label className="field">
        {words.yourTimezone}
        <TimezoneInput value={timezone} placeholder={props.serverTimezone} onChange={setTimezone} />
        <span className="hint">{words.yourTimezoneHint(Intl.DateTimeFormat().resolvedOptions().timeZone)}</span>
      </label>
      <button type="submit" className="button" disabled={timezone.trim() === (props.timezone ?? "")}>
        {words.save}
      </button>
    </form>
  );
}

function PasswordForm({ hasPassword, name }: { hasPassword: boolean; name: string }) {
  const [current, setCurrent] = useState("");
  const [newPassword, setNewPassword] = useState("");
  const { refetch } = useAccount();
  const runOnce = useSingleFlight();
  const save = async () => {
    if (!(await attempt(() => calls.setPassword(hasPassword ? current : null, newPassword)))) return;
    setCurrent("");
    setNewPassword("");
    toast(words.passwordSaved);
    await refetch();
  };
  return (
    <form className="setting-form" onSubmit={(event) => handleSubmit(event, () => runOnce(save))}>
      <h3>{hasPassword ? words.changePassword : words.setPassword}</h3>
      <input type="text" name="username" autoComplete="username" value={name} readOnly hidden /> {/* for password managers */}
      {hasPassword && (
        <label className="field">
          {words.passwordCurrent}
          <input type="password" value={current} required autoComplete="current-password" onChange={(event) => setCurrent(event.target.value)} />
        </label>
      )}
      <label className="field">
        {words.passwordNew}
        <input
          type="password"
          value={newPassword}
          required
          minLength={MIN_PASSWORD_CHARS}
          maxLength={MAX_PASSWORD_CHARS}
          autoComplete="new-password"
          onChange={(event) => setNewPassword(event.target.value)}
        />
        <span className="hint">{words.passwordHint}</span>
      </label>
      <button type="submit" className="button" disabled={newPassword.length < MIN_PASSWORD_CHARS || (hasPassword && current === "")}>
        {words.save}
      </button>
    </form>
  );
}

function handleSubmit(event: SubmitEvent, act: () => Promise<void>): void {
  event.preventDefault();
  void act();
}
