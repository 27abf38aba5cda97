/** The sign-in page: by link, password or passkey. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type SubmitEvent } from "react";
import * as calls from "../api/accountCalls";
import { ApiError, describeError } from "../api/errors";
import { getLocation, navigate } from "../lib/router";
import { words } from "../words";
import { canUsePasskeys, PasskeyDeclinedError, requestPasskey } from "./passkeySignIn";
import "./sign-in.css";

const SIGN_IN_PATH = "sign-in";

interface Props {
  onDone: () => void;
  onLinkRejected: () => void; // the person may already be signed in
}

export default function SignIn({ onDone, onLinkRejected }: Props) {
  const [token] = useState(readLinkToken);
  const { data: methods, failureReason } = useQuery({
    queryKey: ["sign-in methods"],
    queryFn: calls.getSignInMethods,
    retry: (_, cause) => !(cause instanceof ApiError),
    retryDelay: 1500,
  });
  const [failureText, setFailureText] = useState("");
  const [isBusy, setBusy] = useState(token !== null);
  const error = failureText || (failureReason === null ? "" : describeFailure(failureReason));

  useEffect(() => {
    if (token === null) return;
    signInByLink(token).then(onDone, (failure: unknown) => {
      setFailureText(describeFailure(failure));
      setBusy(false);
      onLinkRejected();
    });
  }, [token, onDone, onLinkRejected]);

  const trySignIn = (signIn: () => Promise<unknown>) => {
    setBusy(true);
    setFailureText("");
    signIn().then(onDone, (failure: unknown) => {
      setBusy(false);
      setFailureText(describeFailure(failure));
    });
  };

  return (
    <main className="sign-in">
      <div className="sign-in-card">
        <img src={new URL("./icon.svg", document.baseURI).href} alt="" width="56" height="56" />
        <h1>Palaver</h1>
        <p className="intro">{words.signInIntro}</p>
        {error !== "" && (
          <p className="error" role="alert">
            {error}
          </p>
        )}
        {isBusy && <p role="status">{words.signingIn}</p>}
        {methods?.password && <PasswordForm isBusy={isBusy} trySignIn={trySignIn} />}
        {methods?.passkey && canUsePasskeys() && (
          <button type="button" className="button wide" disabled={isBusy} onClick={() => trySignIn(signInByPasskey)}>
            {words.usePasskey}
          </button>
        )}
        <p className="hint">
          {words.signInHint} <code>{methods?.link_command ?? "palaver serve --link"}</code>. {words.signInAskOwner}
        </p>
      </div>
    </main>
  );
}

function PasswordForm({ isBusy, trySignIn }: { isBusy: boolean; trySignIn: (signIn: () => Promise<unknown>) => void }) {
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    trySignIn(() => calls.signInByPassword(readField(form, "name"), readField(form, "password")));
  };
  return (
    <form onSubmit={submit}>
      <label className="field">
        {words.name}
        <input name="name" autoComplete="username" required autoFocus />
      </label>
      <label className="field">
        {words.password}
        <input name="password" type="password" autoComplete="current-password" required />
      </label>
      <button type="submit" className="button primary wide" disabled={isBusy}>
        {words.signIn}
      </button>
    </form>
  );
}

function describeFailure(failure: unknown): string {
  return failure instanceof PasskeyDeclinedError ? words.passkeyCanceled : describeError(failure);
}

function readField(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value : "";
}

async function signInByPasskey(): Promise<void> {
  await calls.signInByPasskey(await requestPasskey(await calls.getPasskeyOptions()));
}

/** The token of a sign-in link. It is after the #, which browsers do not send to servers, and is removed from the address. */
function readLinkToken(): string | null {
  const { path, hash } = getLocation();
  return path === SIGN_IN_PATH && hash !== "" ? hash : null;
}

const pendingLinks = new Map<string, Promise<unknown>>();

/** A link works once, and React may run an effect twice, so the request is shared. */
function signInByLink(token: string): Promise<unknown> {
  let request = pendingLinks.get(token);
  if (request === undefined) {
    navigate(SIGN_IN_PATH, { replace: true });
    pendingLinks.set(token, (request = calls.signInByLink(token)));
  }
  return request;
}
