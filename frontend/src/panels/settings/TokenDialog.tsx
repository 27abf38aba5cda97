/** Making a token: what it is for, what it may do, how long it works. */
import { useState } from "react";
import { attempt } from "../../conversation/actions";
import { Dialog } from "../../ui/Dialog";
import { words } from "../../words";
import * as calls from "../calls";
import type { NewToken, Scope } from "../calls";

const SCOPES: readonly Scope[] = ["read", "write", "chat", "admin"];
const TERMS = ["30", "90", "365", ""] as const; // days; nothing is for ever

interface Props {
  isOwner: boolean;
  onClose: () => void;
  onMade: (made: NewToken) => void;
}

export function TokenDialog({ isOwner, onClose, onMade }: Props) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set<Scope>(["read"]));
  const [term, setTerm] = useState<string>("90");
  const offered = SCOPES.filter((scope) => scope !== "admin" || isOwner);
  const toggle = (scope: Scope) =>
    setScopes((before) => new Set(before.has(scope) ? [...before].filter((each) => each !== scope) : [...before, scope]));
  const make = () =>
    attempt(async () => onMade(await calls.createToken(name.trim(), offered.filter((scope) => scopes.has(scope)), term === "" ? null : Number(term))));
  return (
    <Dialog label={words.newToken} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <h2>{words.newToken}</h2>
        <label className="field">
          {words.tokenName}
          <input value={name} dir="auto" autoFocus required maxLength={60} onChange={(event) => setName(event.target.value)} />
        </label>
        <fieldset className="options">
          <legend>{words.tokenScopes}</legend>
          {offered.map((scope) => (
            <label key={scope} className="option">
              <input type="checkbox" checked={scopes.has(scope)} onChange={() => toggle(scope)} />
              <span>{words.scopes[scope]}</span>
            </label>
          ))}
        </fieldset>
        <label className="field">
          {words.tokenEnds}
          <select value={term} onChange={(event) => setTerm(event.target.value)}>
            {TERMS.map((days) => (
              <option key={days} value={days}>
                {termName(days)}
              </option>
            ))}
          </select>
        </label>
        <div className="dialog-actions">
          <button type="button" className="button" onClick={onClose}>
            {words.cancel}
          </button>
          <button type="submit" className="button primary" disabled={name.trim() === "" || scopes.size === 0}>
            {words.create}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function termName(days: (typeof TERMS)[number]): string {
  if (days === "") return words.tokenForEver;
  return days === "365" ? words.tokenForYear : words.tokenForDays(Number(days));
}
