/** Creates a token: its name, its scopes and its lifetime. */
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { NameDialog } from "../../ui/NameDialog";
import { words } from "../../words";
import type { NewToken, Scope } from "../shared/calls";
import * as calls from "../shared/calls";

const SCOPES: readonly Scope[] = ["read", "write", "chat", "admin"];
const LIFETIMES_DAYS = ["30", "90", "365", ""] as const; // empty: it does not expire

interface Props {
  isOwner: boolean;
  onClose: () => void;
  onCreated: (token: NewToken) => void;
}

export function TokenDialog({ isOwner, onClose, onCreated }: Props) {
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set<Scope>(["read"]));
  const [lifetime, setLifetime] = useState<string>("90");
  const availableScopes = SCOPES.filter((scope) => scope !== "admin" || isOwner);
  const toggle = (scope: Scope) =>
    setScopes((previous) => new Set(previous.has(scope) ? [...previous].filter((each) => each !== scope) : [...previous, scope]));
  const create = (name: string) =>
    attempt(async () => onCreated(await calls.createToken(name, availableScopes.filter((scope) => scopes.has(scope)), lifetime === "" ? null : Number(lifetime))));
  return (
    <NameDialog
      title={words.newToken}
      label={words.tokenName}
      action={words.create}
      isReady={scopes.size > 0}
      onClose={onClose}
      onDone={create}
    >
      <fieldset className="options">
        <legend>{words.tokenScopes}</legend>
        {availableScopes.map((scope) => (
          <label key={scope} className="option">
            <input type="checkbox" checked={scopes.has(scope)} onChange={() => toggle(scope)} />
            <span>{words.scopes[scope]}</span>
          </label>
        ))}
      </fieldset>
      <label className="field">
        {words.tokenLifetime}
        <select value={lifetime} onChange={(event) => setLifetime(event.target.value)}>
          {LIFETIMES_DAYS.map((days) => (
            <option key={days} value={days}>
              {formatLifetime(days)}
            </option>
          ))}
        </select>
      </label>
    </NameDialog>
  );
}

function formatLifetime(days: (typeof LIFETIMES_DAYS)[number]): string {
  if (days === "") return words.tokenLifetimeForever;
  return days === "365" ? words.tokenLifetimeYear : words.tokenLifetimeDays(Number(days));
}
