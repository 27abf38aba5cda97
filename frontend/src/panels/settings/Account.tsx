/** Somebody's name and password. */
import { useState, type SubmitEvent } from "react";
import type { Me } from "../../api/types";
import { attempt } from "../../conversation/actions";
import { useMyself } from "../../live/context";
import { toast } from "../../ui/toasts";
import { useOnce } from "../../ui/useOnce";
import { words } from "../../words";
import * as calls from "../calls";

export function Account({ me }: { me: Me }) {
  return (
    <>
      <NameForm name={me.person.name} />
      <PasswordForm hasOne={me.ways.password} name={me.person.name} />
    </>
  );
}

function NameForm(props: { name: string }) {
  const [name, setName] = useState(props.name);
  const { again } = useMyself();
  const once = useOnce();
  const save = async () => {
    if (!(await attempt(() => calls.rename(name.trim())))) return;
    toast(words.nameSaved);
    await again();
  };
  return (
    <form className="setting-form" onSubmit={(event) => submitted(event, () => once(save))}>
      <label className="field">
        {words.yourName}
        <input value={name} dir="auto" required maxLength={60} autoComplete="username" onChange={(event) => setName(event.target.value)} />
        <span className="hint">{words.yourNameHint}</span>
      </label>
      <button type="submit" className="button" disabled={name.trim() === "" || name.trim() === props.name}>
        {words.save}
      </button>
    </form>
  );
}

function PasswordForm({ hasOne, name }: { hasOne: boolean; name: string }) {
  const [current, setCurrent] = useState("");
  const [fresh, setFresh] = useState("");
  const { again } = useMyself();
  const once = useOnce();
  const save = async () => {
    if (!(await attempt(() => calls.setPassword(hasOne ? current : null, fresh)))) return;
    setCurrent("");
    setFresh("");
    toast(words.passwordSaved);
    await again();
  };
  return (
    <form className="setting-form" onSubmit={(event) => submitted(event, () => once(save))}>
      <h3>{hasOne ? words.changePassword : words.setPassword}</h3>
      <input type="text" name="username" autoComplete="username" value={name} readOnly hidden /> {/* for password keepers */}
      {hasOne && (
        <label className="field">
          {words.passwordCurrent}
          <input type="password" value={current} required autoComplete="current-password" onChange={(event) => setCurrent(event.target.value)} />
        </label>
      )}
      <label className="field">
        {words.passwordNew}
        <input
          type="password"
          value={fresh}
          required
          minLength={8}
          maxLength={256}
          autoComplete="new-password"
          onChange={(event) => setFresh(event.target.value)}
        />
        <span className="hint">{words.passwordHint}</span>
      </label>
      <button type="submit" className="button" disabled={fresh.length < 8 || (hasOne && current === "")}>
        {words.save}
      </button>
    </form>
  );
}

function submitted(event: SubmitEvent, act: () => Promise<void>): void {
  event.preventDefault();
  void act();
}
