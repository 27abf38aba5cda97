/** Signing in: by the link that was opened, by password, or by passkey. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type SubmitEvent } from "react";
import { ApiError } from "../api/client";
import * as calls from "../api/calls";
import { go, whereWeAre } from "../lib/router";
import { words } from "../words";
import { whyNot } from "../words/refusals";
import { canUsePasskeys, NoPasskey, passkeyAnswer } from "./passkey";

const STEP = "sign-in";

interface Props {
  onDone: () => void;
  onLinkRefused: () => void; // whoever opened it may be signed in all the same
}

export default function SignIn({ onDone, onLinkRefused }: Props) {
  const [token] = useState(tokenOfLink);
  const { data: ways, failureReason } = useQuery({
    queryKey: ["ways in"],
    queryFn: calls.waysIn,
    retry: (_, failure) => !(failure instanceof ApiError),
    retryDelay: 1500,
  });
  const [refused, setRefused] = useState("");
  const [isBusy, setBusy] = useState(token !== null);
  const error = refused || (failureReason === null ? "" : tellingOf(failureReason));

  useEffect(() => {
    if (token === null) return;
    withLink(token).then(onDone, (failure: unknown) => {
      setRefused(tellingOf(failure));
      setBusy(false);
      onLinkRefused();
    });
  }, [token, onDone, onLinkRefused]);

  const attempt = (signIn: () => Promise<unknown>) => {
    setBusy(true);
    setRefused("");
    signIn().then(onDone, (failure: unknown) => {
      setBusy(false);
      setRefused(tellingOf(failure));
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
        {ways?.password && <PasswordForm isBusy={isBusy} attempt={attempt} />}
        {ways?.passkey && canUsePasskeys() && (
          <button type="button" className="button wide" disabled={isBusy} onClick={() => attempt(byPasskey)}>
            {words.withPasskey}
          </button>
        )}
        <p className="hint">
          {words.signInHint} <code>palaver serve --link</code>. {words.signInAsk}
        </p>
      </div>
    </main>
  );
}

function PasswordForm({ isBusy, attempt }: { isBusy: boolean; attempt: (signIn: () => Promise<unknown>) => void }) {
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    attempt(() => calls.signInByPassword(textIn(given, "name"), textIn(given, "password")));
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

function tellingOf(failure: unknown): string {
  return failure instanceof NoPasskey ? words.passkeyNotUsed : whyNot(failure);
}

function textIn(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value : "";
}

async function byPasskey(): Promise<void> {
  await calls.signInByPasskey(await passkeyAnswer(await calls.passkeyOptions()));
}

/** The token of a sign-in link. It stands behind the #, which no server is sent, and goes from the address at once. */
function tokenOfLink(): string | null {
  const { step, hash } = whereWeAre();
  return step === STEP && hash !== "" ? hash : null;
}

const used = new Map<string, Promise<unknown>>();

/** A link signs in once, also where React draws a page twice. */
function withLink(token: string): Promise<unknown> {
  let signingIn = used.get(token);
  if (signingIn === undefined) {
    go(STEP, { replace: true });
    used.set(token, (signingIn = calls.signInByLink(token)));
  }
  return signingIn;
}
