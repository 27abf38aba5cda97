/** The first visit after a sign-in link: a name, and a way to sign in again. It can be skipped, and is not shown again. */
import { useState, type SubmitEvent } from "react";
import { MAX_NAME_CHARS, MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from "../api/accountLimits";
import * as calls from "../api/accountCalls";
import { describeError } from "../api/errors";
import { canCreatePasskeys, createPasskey } from "../lib/passkeyCreation";
import type { Account } from "../live/context";
import { words } from "../words";
import "./sign-in.css";

export default function Welcome({ me, refetch }: Account) {
  const [name, setName] = useState(me.person.name);
  const [password, setPassword] = useState("");
  const [failureText, setFailureText] = useState("");
  const [isBusy, setBusy] = useState(false);

  /** Ends the welcome after the work, unless the work fails or the person cancels it. */
  const finishAfter = async (work: () => Promise<boolean>) => {
    setBusy(true);
    setFailureText("");
    try {
      if (!(await work())) return;
      await calls.finishWelcome();
      await refetch();
    } catch (failure) {
      setFailureText(describeError(failure));
    } finally {
      setBusy(false);
    }
  };

  const saveName = async () => {
    if (name.trim() !== "" && name.trim() !== me.person.name) await calls.renameMe(name.trim());
  };

  const savePassword = async () => {
    await saveName();
    if (password !== "") await calls.setPassword(null, password);
    return true;
  };

  const addPasskey = async () => {
    await saveName();
    const credential = await createPasskey(await calls.getNewPasskeyOptions());
    if (credential === null) setFailureText(words.passkeyNotCreated);
    else await calls.addPasskey(words.firstPasskeyName, credential);
    return credential !== null;
  };

  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    void finishAfter(savePassword);
  };

  return (
    <main className="sign-in">
      <div className="sign-in-card">
        <img src={new URL("./icon.svg", document.baseURI).href} alt="" width="56" height="56" />
        <h1>{words.welcomeTitle}</h1>
        <p className="intro">{words.welcomeIntro}</p>
        {failureText !== "" && (
          <p className="error" role="alert">
            {failureText}
          </p>
        )}
        <form onSubmit={submit}>
          <label className="field">
            {words.yourName}
            <input
              value={name}
              dir="auto"
              required
              autoFocus
              maxLength={MAX_NAME_CHARS}
              autoComplete="username"
              onFocus={(event) => event.target.select()}
              onChange={(event) => setName(event.target.value)}
            />
          </label>
          <label className="field">
            {words.passwordOptional}
            <input
              type="password"
              value={password}
              minLength={MIN_PASSWORD_CHARS}
              maxLength={MAX_PASSWORD_CHARS}
              autoComplete="new-password"
              onChange={(event) => setPassword(event.target.value)}
            />
            <span className="hint">{words.passwordLengthHint}</span>
          </label>
          <button type="submit" className="button primary wide" disabled={isBusy}>
            {words.welcomeContinue}
          </button>
          {canCreatePasskeys() && (
            <button type="button" className="button wide" disabled={isBusy} onClick={() => void finishAfter(addPasskey)}>
              {words.usePasskeyInstead}
            </button>
          )}
          <button type="button" className="text-button" disabled={isBusy} onClick={() => void finishAfter(() => Promise.resolve(true))}>
            {words.welcomeSkip}
          </button>
        </form>
        <p className="hint">
          {words.welcomeWithout}{" "}
          {me.person.role === "owner" ? (
            <>
              {words.welcomeNewLink} <code>
                {me.command} serve <span className="unbroken">--link</span>
              </code>
            </>
          ) : (
            words.welcomeAskOwner
          )}
        </p>
      </div>
    </main>
  );
}
