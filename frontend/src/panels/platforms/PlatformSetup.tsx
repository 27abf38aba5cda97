/** The page of one platform, for owners: the steps, the fields to paste, a test, the connection, and who asks for access. */
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { ApiError, describeError } from "../../api/errors";
import { getPlatformName } from "../../format/platforms";
import { useLeaveGuard } from "../../lib/leaveGuard";
import { confirm } from "../../ui/ConfirmDialog";
import { Link } from "../../ui/Link";
import { PlatformBadge } from "../../ui/PlatformBadge";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { setupWords, translateHelp } from "../../words/setup";
import { listEntrySettings } from "../forms/sections";
import { SettingField } from "../forms/SettingField";
import { readProblems, RESET } from "../forms/settingValues";
import { SettingsForm } from "../forms/SettingsForm";
import { changeSettings, testAccount, useRefreshSettings, type AccountTest, type PlatformField, type PlatformForm, type Setting, type Settings, type SettingTemplate } from "../forms/settingsApi";
import { AccessRequests } from "../shared/AccessRequests";
import type { PlatformAccount } from "../shared/calls";
import { AccountStatuses } from "./AccountStatus";

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
  const isConfigured = settings.settings.some((each) => each.is_set && each.key.startsWith(`platforms.${form.platform}.`));
  const refresh = useRefreshSettings();
  const disconnect = async () => {
    if (!(await confirm({ title: `${name}: ${setupWords.disconnect}?`, text: "", action: setupWords.disconnect }))) return;
    if (await attempt(() => changeSettings({ set: { [`platforms.${form.platform}.enabled`]: false } }))) await refresh();
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
        <p className="hint" lang="en">
          {form.summary}
        </p>
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
        <h3>{setupWords.steps}</h3>
        <ol className="steps-list">
          {form.steps.map(translateHelp).map(({ text, lang }) => (
            <li key={text} lang={lang}>
              {text}
            </li>
          ))}
        </ol>
        <AccountForm form={form} settings={settings} />
      </section>
      <section className="card" aria-labelledby="setup-state">
        <h2 id="setup-state" className="section-title">
          {setupWords.accountState}
        </h2>
        <AccountStatuses platform={form.platform} accounts={accounts} />
        {isConfigured && accounts.length > 0 && (
          <button type="button" className="text-button" onClick={() => void disconnect()}>
            {setupWords.disconnect}
          </button>
        )}
      </section>
      <AccessRequests platform={form.platform} onApprove={refresh} />
      <details className="card disclosure more-settings">
        <summary>{setupWords.moreFields}</summary>
        <SettingsForm settings={settings} shown={rules} hasHeadings={false} />
      </details>
    </>
  );
}

function AccountForm({ form, settings }: { form: PlatformForm; settings: Settings }) {
  const [draft, setDraft] = useState<ReadonlyMap<string, unknown>>(new Map());
  const [problems, setProblems] = useState<ReadonlyMap<string, string>>(new Map());
  const [test, setTest] = useState<AccountTest | null>(null);
  const [isTesting, setTesting] = useState(false);
  const refresh = useRefreshSettings();
  const runOnce = useSingleFlight();
  useLeaveGuard(draft.size > 0, setupWords.leaveQuestion);
  const prefix = `platforms.${form.platform}.settings.`;
  const known = new Map(settings.settings.map((each) => [each.key, each]));
  const isMain = (field: PlatformField) => field.is_required || (field.is_secret && field.default === null) || known.get(prefix + field.name)?.is_set === true;

  const run = async (work: () => Promise<void>) => {
    setProblems(new Map());
    try {
      await work();
    } catch (error) {
      const keys = new Set(form.fields.map((field) => prefix + field.name));
      setProblems(error instanceof ApiError ? readProblems(error, keys) : new Map([["", describeError(error)]]));
    }
  };
  const runTest = () =>
    run(async () => {
      setTesting(true);
      setTest(null);
      try {
        const values = [...draft].filter(([, value]) => value !== RESET).map(([key, value]) => [key.slice(prefix.length), value]);
        setTest(await testAccount(form.platform, Object.fromEntries(values) as Record<string, unknown>));
      } finally {
        setTesting(false);
      }
    });
  const save = () =>
    run(async () => {
      const values = Object.fromEntries([...draft].filter(([, value]) => value !== RESET));
      await changeSettings({
        set: { ...values, [`platforms.${form.platform}.enabled`]: true },
        unset: [...draft].filter(([, value]) => value === RESET).map(([key]) => key),
        expected_version: settings.version,
      });
      setDraft(new Map());
      toast(setupWords.accountSaved(getPlatformName(form.platform)));
      await refresh();
    });
  const renderField = (field: PlatformField) => {
    const key = prefix + field.name;
    return (
      <SettingField
        key={key}
        setting={known.get(key) ?? makeSetting(key, field)}
        template={makeTemplate(field)}
        label={field.is_required ? `${field.label} *` : field.label}
        draft={draft.get(key)}
        problem={problems.get(key)}
        onChange={(value) => {
          const next = new Map(draft);
          if (value === undefined) next.delete(key);
          else next.set(key, value);
          setDraft(next);
        }}
      />
    );
  };
  const others = form.fields.filter((field) => !isMain(field));
  return (
    <form
      className="settings-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void runOnce(save);
      }}
    >
      {form.fields.filter(isMain).map(renderField)}
      {others.length > 0 && (
        <details className="disclosure" open={form.fields.every((field) => !isMain(field))}>
          <summary>{setupWords.moreFields}</summary>
          <div className="settings-form">{others.map(renderField)}</div>
        </details>
      )}
      <div className="form-actions">
        <button type="submit" className="button primary" disabled={form.problem !== null}>
          {setupWords.saveAndConnect}
        </button>
        <button type="button" className="button" disabled={isTesting || form.problem !== null} onClick={() => void runTest()}>
          {setupWords.test}
        </button>
      </div>
      <div role="status" className="test-result" data-failed={test?.ok === false} dir="auto">
        {isTesting && setupWords.testing}
        {test !== null && <p>{test.ok ? (test.is_linked ? setupWords.accountTestOk(test.name) : setupWords.accountTestUnlinked) : `${setupWords.testFailed} ${test.error ?? ""}`}</p>}
        {test?.warnings.map((each) => <p key={each}>{each}</p>)}
      </div>
      <p role="alert" className="field-problem" dir="auto">
        {problems.get("")}
      </p>
    </form>
  );
}

function makeTemplate(field: PlatformField): SettingTemplate {
  return {
    key: field.name,
    kind: field.kind,
    is_list: field.is_list,
    is_optional: !field.is_required,
    choices: field.choices,
    minimum: field.minimum,
    maximum: field.maximum,
    pattern: field.pattern,
    allowed: "",
    default: field.default,
    is_secret: field.is_secret,
    needs_restart: false,
    is_terminal_only: field.is_terminal_only,
    unstorable_reason: null,
    help: [field.help, field.where].filter(Boolean).join(" "),
  };
}

function makeSetting(key: string, field: PlatformField): Setting {
  return {
    key,
    template: "platforms.<name>.settings.<name>",
    value: field.default ?? null,
    is_set: false,
    is_secret: field.is_secret,
    hint: null,
    source: { kind: "default", variable: null, line: null, set_at: null, set_by: null },
    can_change: !field.is_terminal_only,
    problem: null,
  };
}
