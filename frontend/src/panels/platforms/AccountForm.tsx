/** The settings of one account on a platform: fields to paste, a test that stores nothing, and saving, which connects it. */
import { useState } from "react";
import type { Schemas } from "../../api/types";
import { ApiError, describeError } from "../../api/errors";
import { getPlatformName } from "../../format/platforms";
import { useLeaveGuard } from "../../lib/leaveGuard";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { setupWords } from "../../words/setup";
import { SettingField } from "../forms/SettingField";
import { readProblems, removeKey, RESET } from "../forms/settingValues";
import { changeSettings, isConflict, testAccount, useRefreshSettings, type PlatformField, type PlatformForm, type Setting, type Settings, type SettingTemplate } from "../forms/settingsApi";

interface Props {
  form: PlatformForm;
  settings: Settings;
  account?: string; // its name; empty: the account without a name
  onSave?: () => void;
}

// Settings that need not be set: those that a step asks for, and secrets that hardly an account needs.
const ALWAYS_SHOWN = new Set(["matrix.user_id"]);
const SELDOM_SET = new Set(["slack.signing_secret", "telegram.webhook_secret", "whatsapp-web.proxy_url"]);

/** Where the settings of an account are, in the keys of settings. */
export function getAccountPrefix(platform: string, account: string): string {
  return account === "" ? `platforms.${platform}` : `platforms.${platform}.accounts.${account}`;
}

export function AccountForm({ form, settings, account = "", onSave = () => undefined }: Props) {
  const [draft, setDraft] = useState<ReadonlyMap<string, unknown>>(new Map());
  const [problems, setProblems] = useState<ReadonlyMap<string, string>>(new Map());
  const [test, setTest] = useState<Schemas["AccountTestJson"] | null>(null);
  const [isTesting, setTesting] = useState(false);
  const refresh = useRefreshSettings();
  const runOnce = useSingleFlight();
  useLeaveGuard(draft.size > 0, setupWords.leaveQuestion);
  const accountKey = getAccountPrefix(form.platform, account);
  const prefix = `${accountKey}.settings.`;
  const known = new Map(settings.settings.map((each) => [each.key, each]));
  const isMain = (field: PlatformField) => {
    const name = `${form.platform}.${field.name}`;
    if (field.is_required || ALWAYS_SHOWN.has(name) || known.get(prefix + field.name)?.is_set === true) return true;
    return field.is_secret && field.default === null && !SELDOM_SET.has(name);
  };

  const run = async (work: () => Promise<void>) => {
    setProblems(new Map());
    setTest(null);
    try {
      await work();
    } catch (error) {
      const keys = new Set(form.fields.map((field) => prefix + field.name));
      if (isConflict(error)) {
        await refresh(); // first: until then a click does nothing
        setProblems(new Map([["", setupWords.conflict]]));
      } else setProblems(error instanceof ApiError ? readProblems(error, keys) : new Map([["", describeError(error)]]));
    }
  };
  /** What is wrong, without the key of a setting that is a field of this form. */
  const describeFault = (text: string) => form.fields.reduce((rest, field) => removeKey(prefix + field.name, rest), text);
  const runTest = () =>
    run(async () => {
      setTesting(true);
      try {
        const values = [...draft].filter(([, value]) => value !== RESET).map(([key, value]) => [key.slice(prefix.length), value]);
        setTest(await testAccount(form.platform, account, Object.fromEntries(values) as Record<string, unknown>));
      } finally {
        setTesting(false);
      }
    });
  const save = () =>
    run(async () => {
      const values = Object.fromEntries([...draft].filter(([, value]) => value !== RESET));
      await changeSettings({
        set: { ...values, [`platforms.${form.platform}.enabled`]: true, ...(account !== "" && { [`${accountKey}.enabled`]: true }) },
        unset: [...draft].filter(([, value]) => value === RESET).map(([key]) => key),
        expected_version: settings.version,
      });
      setDraft(new Map());
      toast(setupWords.accountSaved([getPlatformName(form.platform), account].filter(Boolean).join(" · ")));
      await refresh();
      onSave();
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
        {test !== null && <p>{test.ok ? (test.is_linked ? setupWords.accountTestOk(test.name) : setupWords.accountTestUnlinked) : `${setupWords.testFailed} ${describeFault(test.error ?? "")}`}</p>}
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
    template: "platforms.<name>.settings.<name>", // or that of an account with a name: the manifest says the rest
    value: field.default ?? null,
    is_set: false,
    is_secret: field.is_secret,
    hint: null,
    source: { kind: "default", variable: null, line: null, set_at: null, set_by: null },
    can_change: !field.is_terminal_only,
    problem: null,
  };
}
