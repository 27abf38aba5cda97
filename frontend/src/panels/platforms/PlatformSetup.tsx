/** The page of one platform, for owners: the steps, the fields to paste, a test, the connection, and who asks for access. */
import { useEffect, useState } from "react";
import { getPlatformName } from "../../format/platforms";
import { confirm } from "../../ui/ConfirmDialog";
import { Link } from "../../ui/Link";
import { PlatformBadge } from "../../ui/PlatformBadge";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { listEntrySettings } from "../forms/sections";
import { formatValue, isPinned } from "../forms/settingValues";
import { SettingsForm } from "../forms/SettingsForm";
import { changeSettings, useRefreshSettings, useSettingsAction, type PlatformForm, type Settings } from "../forms/settingsApi";
import { AccessRequests } from "../forms/AccessRequests";
import type { PlatformAccount } from "../shared/calls";
import { AccountForm } from "./AccountForm";
import { AccountStatuses } from "./AccountStatus";
import { ConnectSteps } from "./ConnectSteps";
import { listAccountNames, NamedAccounts } from "./NamedAccounts";

const START_MS = 15_000; // until a server should have taken over an account that was saved

interface Props {
  form: PlatformForm;
  settings: Settings;
  accounts: readonly PlatformAccount[];
}

export function PlatformSetup({ form, settings, accounts }: Props) {
  const name = getPlatformName(form.platform);
  const rules = listEntrySettings(settings, "platforms", form.platform).filter(
    (each) => !each.template.includes(".settings.") && !each.template.includes(".accounts."),
  );
  const key = `platforms.${form.platform}`;
  const isConfigured = settings.settings.some((each) => each.is_set && each.key.startsWith(`${key}.`));
  const unnamed = settings.settings.filter((each) => each.is_set && each.key.startsWith(`${key}.settings.`));
  const hasOthers = listAccountNames(settings, form.platform).length > 0;
  const [isStarting, setStarting] = useState(false);
  useEffect(() => {
    if (!isStarting) return;
    const timer = setTimeout(() => setStarting(false), START_MS);
    return () => clearTimeout(timer);
  }, [isStarting]);
  const refresh = useRefreshSettings();
  const run = useSettingsAction();
  const disconnect = async () => {
    const text = setupWords.disconnectText(name);
    if (!(await confirm({ title: `${name}: ${setupWords.disconnect}?`, text, action: setupWords.disconnect }))) return;
    await run(() => changeSettings({ set: { [`${key}.enabled`]: false }, expected_version: settings.version }));
  };
  const remove = async () => {
    const question = { title: `${name}: ${setupWords.removeOnlyAccount}?`, text: setupWords.removeAccountText, action: words.delete };
    if (!(await confirm(question))) return;
    const unset = [`${key}.settings`, ...(hasOthers ? [] : [`${key}.enabled`])]; // without any account, it is off
    await run(() => changeSettings({ unset, expected_version: settings.version }));
  };
  const publicUrl = settings.settings.find((each) => each.key === "web.public_url");
  return (
    <>
      <p>
        <Link to="platforms" className="text-button">{setupWords.backToPlatforms}</Link>
      </p>
      <section className="card" aria-labelledby="setup-platform">
        <h2 id="setup-platform" className="section-title">
          <PlatformBadge platform={form.platform} />
          {setupWords.connectTo(name)}
        </h2>
        <p className="hint">{form.summary}</p>
        {form.problem !== null && (
          <p className="field-problem">
            {setupWords.unavailable} {form.problem}
          </p>
        )}
        {form.needs_public_url && publicUrl?.value == null && (
          <p className="panel-notice">
            <span>
              {setupWords.needsPublicUrl} <Link to="server" section="web" className="text-button">{setupWords.sections.web}</Link>
            </span>
          </p>
        )}
        <ConnectSteps form={form} publicUrl={publicUrl?.value == null ? null : formatValue(publicUrl.value)} />
        <AccountForm form={form} settings={settings} onSave={() => setStarting(true)} />
        {unnamed.length > 0 && !unnamed.some(isPinned) && (
          <button type="button" className="text-button" onClick={() => void remove()}>
            {setupWords.removeOnlyAccount}
          </button>
        )}
      </section>
      {(isConfigured || accounts.length > 0) && (
        <section className="card" aria-labelledby="setup-state">
          <h2 id="setup-state" className="section-title">
            {setupWords.accountState}
          </h2>
          <AccountStatuses platform={form.platform} accounts={accounts} isStarting={isStarting} />
          {isConfigured && accounts.length > 0 && (
            <button type="button" className="text-button" onClick={() => void disconnect()}>
              {hasOthers ? setupWords.disconnectAll : setupWords.disconnect}
            </button>
          )}
        </section>
      )}
      <AccessRequests platform={form.platform} onApprove={refresh} />
      <NamedAccounts form={form} settings={settings} />
      <details className="card disclosure more-settings">
        <summary>{setupWords.platformRules(name)}</summary>
        <SettingsForm settings={settings} shown={rules} namedParts={2} />
      </details>
    </>
  );
}
