/** Making a token: what it is for, what it may do, how long it works. */
import { useState } from "react";
import { attempt } from "../../conversation/actions";
import { NameDialog } from "../../ui/NameDialog";
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
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set<Scope>(["read"]));
  const [term, setTerm] = useState<string>("90");
  const offered = SCOPES.filter((scope) => scope !== "admin" || isOwner);
  const toggle = (scope: Scope) =>
    setScopes((before) => new Set(before.has(scope) ? [...before].filter((each) => each !== scope) : [...before, scope]));
  const make = (name: string) =>
    attempt(async () => onMade(await calls.createToken(name, offered.filter((scope) => scopes.has(scope)), term === "" ? null : Number(term))));
  return (
    <NameDialog
      title={words.newToken}
      label={words.tokenName}
      action={words.create}
      isReady={scopes.size > 0}
      onClose={onClose}
      onDone={make}
    >
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
    </NameDialog>
  );
}

function termName(days: (typeof TERMS)[number]): string {
  if (days === "") return words.tokenForEver;
  return days === "365" ? words.tokenForYear : words.tokenForDays(Number(days));
}
