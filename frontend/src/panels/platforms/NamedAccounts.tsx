/** More accounts on the same platform, each with a name: add one, change it, disconnect it, remove it. */
import { useState } from "react";
import { confirm } from "../../ui/ConfirmDialog";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { isPinned, splitKey } from "../forms/settingValues";
import { changeSettings, useSettingsAction, type PlatformForm, type Settings } from "../forms/settingsApi";
import { AccountForm, getAccountPrefix } from "./AccountForm";

const NAME_PATTERN = "[a-z][a-z0-9_\\-]*";
const MAX_NAME_CHARS = 32;

interface Props {
  form: PlatformForm;
  settings: Settings;
}

/** The names of the accounts that are set up on a platform, without the one that has no name. */
export function listAccountNames(settings: Settings, platform: string): string[] {
  const prefix = `platforms.${platform}.accounts.`;
  const names = settings.settings.flatMap(({ key, is_set }) => (is_set && key.startsWith(prefix) ? [splitKey(key)[3] ?? ""] : []));
  return [...new Set(names)];
}

export function NamedAccounts({ form, settings }: Props) {
  const [added, setAdded] = useState<string | null>(null);
  const [name, setName] = useState("");
  const run = useSettingsAction();
  const names = listAccountNames(settings, form.platform);
  const shown = added === null || names.includes(added) ? names : [...names, added];

  const remove = async (account: string) => {
    if (names.includes(account)) {
      const title = `${setupWords.removeAccount(account)}?`;
      if (!(await confirm({ title, text: setupWords.removeAccountText, action: words.delete }))) return;
      const edit = { unset: [getAccountPrefix(form.platform, account)], expected_version: settings.version };
      if (!(await run(() => changeSettings(edit)))) return;
    }
    if (account === added) setAdded(null);
  };
  const disconnect = async (account: string) => {
    const title = `${setupWords.disconnectAccount(account)}?`;
    if (!(await confirm({ title, text: setupWords.disconnectText(account), action: setupWords.disconnect }))) return;
    const edit = { set: { [`${getAccountPrefix(form.platform, account)}.enabled`]: false }, expected_version: settings.version };
    await run(() => changeSettings(edit));
  };

  return (
    <section className="card" aria-labelledby="named-accounts">
      <h2 id="named-accounts" className="section-title">
        {setupWords.otherAccounts}
      </h2>
      <p className="hint">{setupWords.otherAccountsHint}</p>
      {shown.map((account) => {
        const prefix = `${getAccountPrefix(form.platform, account)}.`;
        const own = settings.settings.filter(({ key }) => key.startsWith(prefix));
        const isOff = own.some(({ key, value }) => key === `${prefix}enabled` && value === false);
        return (
          <details key={account} className="entry" open={account === added} aria-label={setupWords.connectAccount(account)}>
            <summary>
              <b>{account}</b> {isOff && <span className="tag">{setupWords.accountOff}</span>}
            </summary>
            <AccountForm form={form} settings={settings} account={account} onSave={() => setAdded(null)} />
            <div className="form-actions">
              {names.includes(account) && !isOff && (
                <button type="button" className="text-button" onClick={() => void disconnect(account)}>
                  {setupWords.disconnectAccount(account)}
                </button>
              )}
              {!own.some(isPinned) && (
                <button type="button" className="text-button" onClick={() => void remove(account)}>
                  {setupWords.removeAccount(account)}
                </button>
              )}
            </div>
          </details>
        );
      })}
      <form
        className="add-entry"
        onSubmit={(event) => {
          event.preventDefault();
          setAdded(name.trim());
          setName("");
        }}
      >
        <label className="field">
          {setupWords.accountName}
          <input value={name} required pattern={NAME_PATTERN} maxLength={MAX_NAME_CHARS} spellCheck={false} autoComplete="off" autoCapitalize="none" title={setupWords.entryNameHint} aria-describedby="account-name-hint" onChange={(event) => setName(event.target.value.toLowerCase())} />
        </label>
        <button type="submit" className="button" disabled={name.trim() === "" || form.problem !== null}>
          {setupWords.addAccount}
        </button>
        <p className="hint" id="account-name-hint">
          {setupWords.entryNameHint}
        </p>
      </form>
    </section>
  );
}
