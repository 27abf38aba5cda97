/** Connects a provider of models: choose it, paste a key, test it, save it, choose its model. */
import { useEffect, useRef, useState } from "react";
import { ApiError, describeError } from "../../api/errors";
import { useAccount } from "../../live/context";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { ModelField } from "./ModelField";
import { formatValue, readProblems } from "./settingValues";
import { changeSettings, isConflict, listProviderModels, testProvider, useRefreshSettings, type ProviderTest, type Settings } from "./settingsApi";
import { TestResult } from "./TestResult";
import "./forms.css";

const OTHER = "";
const MAX_MODELS = 2000;

interface Props {
  settings: Settings;
  name?: string; // of a provider that exists
  takesFocus?: boolean; // a person has asked for the form
  onDone: () => void;
}

export function ProviderForm({ settings, name: existing, takesFocus = false, onDone }: Props) {
  const [stored, setStored] = useState(existing); // its name, once it is saved
  const [preset, setPreset] = useState(existing ?? settings.providers[0]?.name ?? OTHER);
  const [ownName, setOwnName] = useState("");
  const [key, setKey] = useState("");
  const [models, setModels] = useState<readonly string[] | null>(null); // null: not asked yet
  const [model, setModel] = useState("");
  const [test, setTest] = useState<ProviderTest | null>(null);
  const [problem, setProblem] = useState("");
  const [status, setStatus] = useState("");
  const form = useRef<HTMLFormElement>(null);
  const refresh = useRefreshSettings();
  const { refetch } = useAccount();
  const runOnce = useSingleFlight();
  const known = settings.providers.find((each) => each.name === preset);
  const name = stored ?? (preset === OTHER ? ownName.trim() : preset);
  const find = (part: string) => settings.settings.find((each) => each.key === `providers.${name}.${part}`);
  const storedUrl = stored === undefined ? "" : formatValue(find("base_url")?.value);
  const [url, setUrl] = useState(storedUrl);
  const address = url.trim() === "" ? (known?.base_url ?? null) : url.trim();
  const keySetting = find("api_key");
  const hasKey = keySetting?.is_set === true;
  const needsUrl = known?.base_url !== null;
  const isMoved = stored !== undefined && hasKey && url.trim() !== storedUrl; // its key is not sent elsewhere without being entered again

  useEffect(() => {
    if (takesFocus) form.current?.querySelector<HTMLElement>("select, input")?.focus();
  }, [takesFocus]);

  /** Applies what a person enters. What an earlier test or attempt said is no longer about it. */
  const edit = (change: () => void) => {
    change();
    setTest(null);
    setProblem("");
  };

  const attemptWork = async (work: () => Promise<void>) => {
    setProblem("");
    try {
      await work();
    } catch (error) {
      if (isConflict(error)) {
        await refresh(); // first: until then a click does nothing
        setProblem(setupWords.conflict);
      } else setProblem(error instanceof ApiError ? [...readProblems(error, new Set()).values()].join("\n") : describeError(error));
    } finally {
      setStatus("");
    }
  };

  const runTest = () =>
    attemptWork(async () => {
      setStatus(setupWords.testing);
      setTest(null);
      setTest(await testProvider({ provider: name, api_key: key || null, base_url: address, model: model || null }));
    });

  const save = () =>
    attemptWork(async () => {
      const set: Record<string, unknown> = {
        ...(key !== "" && { [`providers.${name}.api_key`]: key }),
        ...(address !== null && needsUrl && { [`providers.${name}.base_url`]: address }),
        ...(model !== "" && { model: `${name}:${model}` }),
      };
      await changeSettings({ set, expected_version: settings.version });
      toast(model === "" ? setupWords.providerSaved(known?.title ?? name) : setupWords.defaultModelSaved(model));
      setStored(name);
      setKey("");
      setTest(null);
      await Promise.all([refresh(), refetch()]);
      if (model === "") await loadModels();
      else onDone();
    });

  /** Lets a person choose among the provider's models, or enter the name of one if it has no list. */
  const loadModels = async () => {
    setStatus(setupWords.loadingModels);
    try {
      const found = (await listProviderModels(name)).models.slice(0, MAX_MODELS);
      setModels(found);
      setModel(known?.default_model != null && found.includes(known.default_model) ? known.default_model : (found[0] ?? ""));
    } catch (error) {
      setModels([]);
      setProblem(`${describeError(error)} ${setupWords.enterModel}`);
    }
  };

  return (
    <form
      ref={form}
      className="settings-form provider-form"
      onSubmit={(event) => {
        event.preventDefault();
        void runOnce(save);
      }}
    >
      {existing !== undefined && <h3>{setupWords.editProvider(known?.title ?? existing)}</h3>}
      {stored === undefined && (
        <label className="field">
          {setupWords.provider}
          <select
            value={preset}
            onChange={(event) =>
              edit(() => {
                setPreset(event.target.value);
                setUrl("");
                setKey(""); // it belongs to the other provider
              })
            }
          >
            {settings.providers.map((each) => (
              <option key={each.name} value={each.name}>
                {each.title}
              </option>
            ))}
            <option value={OTHER}>{setupWords.providerOther}</option>
          </select>
        </label>
      )}
      {stored === undefined && preset === OTHER && (
        <label className="field">
          {setupWords.providerName}
          <input value={ownName} required pattern="[a-z][a-z0-9_\-]*" maxLength={32} title={setupWords.entryNameHint} autoCapitalize="none" spellCheck={false} autoComplete="off" onChange={(event) => edit(() => setOwnName(event.target.value.toLowerCase()))} />
          <span className="hint">{setupWords.entryNameHint}</span>
        </label>
      )}
      {needsUrl && (
        <label className="field">
          {setupWords.address}
          <input type="url" value={url} required={known === undefined} pattern="\s*https?://.+" title={setupWords.addressHint} placeholder={known?.base_url ?? "https://example.org/v1"} spellCheck={false} autoComplete="off" onChange={(event) => edit(() => setUrl(event.target.value))} />
          {known === undefined && <span className="hint">{setupWords.addressHint}</span>}
        </label>
      )}
      <label className="field">
        {known?.needs_key === true ? setupWords.apiKey : setupWords.apiKeyOptional}
        <input type="password" value={key} required={isMoved || (known?.needs_key === true && !hasKey)} autoComplete="off" placeholder={hasKey ? "••••••••" : ""} onChange={(event) => edit(() => setKey(event.target.value))} />
        <span className="hint">
          {isMoved ? setupWords.keyAgain : hasKey ? setupWords.secretSet(keySetting.hint) : ""}{" "}
          {known?.key_page != null && (
            <a className="text-button" href={known.key_page} target="_blank" rel="noreferrer noopener">
              {setupWords.getKey}
            </a>
          )}
        </span>
      </label>
      {models !== null && <ModelField models={models} model={model} onChange={(next) => edit(() => setModel(next))} />}
      <div className="form-actions">
        <button type="submit" className="button primary" disabled={name === "" || status !== ""}>
          {models !== null && model !== "" ? setupWords.useModel : setupWords.saveProvider}
        </button>
        <button
          type="button"
          className="button"
          disabled={status !== "" || name === ""}
          onClick={() => {
            if (form.current?.reportValidity() === true) void runTest();
          }}
        >
          {setupWords.test}
        </button>
        <button type="button" className="text-button" onClick={onDone}>
          {words.close}
        </button>
      </div>
      <div role="status" className="test-result" data-failed={test?.ok === false}>
        {status}
        {test !== null && <TestResult test={test} hasOwnAddress={needsUrl} />}
      </div>
      <p role="alert" className="field-problem" dir="auto">
        {problem}
      </p>
    </form>
  );
}
