/** Connects a provider of models: choose it, paste a key, test it, save it, choose its model. */
import { useState } from "react";
import { ApiError, describeError } from "../../api/errors";
import { describeFailure } from "../../format/errors";
import { useAccount } from "../../live/context";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { formatValue, readProblems } from "./settingValues";
import { changeSettings, isConflict, listProviderModels, testProvider, useRefreshSettings, type ProviderTest, type Settings } from "./settingsApi";
import "./forms.css";

const OTHER = "";
const TEST_MODEL_COUNT = 2000;

interface Props {
  settings: Settings;
  name?: string; // of a provider that exists
  onDone: () => void;
}

export function ProviderForm({ settings, name: existing, onDone }: Props) {
  const [preset, setPreset] = useState(existing ?? settings.providers[0]?.name ?? OTHER);
  const [ownName, setOwnName] = useState("");
  const find = (key: string) => settings.settings.find((each) => each.key === `providers.${existing ?? ""}.${key}`);
  const known = settings.providers.find((each) => each.name === preset);
  const [key, setKey] = useState("");
  const [url, setUrl] = useState(formatValue(find("base_url")?.value));
  const [models, setModels] = useState<readonly string[]>([]);
  const [model, setModel] = useState("");
  const [test, setTest] = useState<ProviderTest | null>(null);
  const [problem, setProblem] = useState("");
  const [isTesting, setTesting] = useState(false);
  const refresh = useRefreshSettings();
  const { refetch } = useAccount();
  const runOnce = useSingleFlight();
  const name = existing ?? (preset === OTHER ? ownName.trim().toLowerCase() : preset);
  const address = url.trim() === "" ? (known?.base_url ?? null) : url.trim();
  const keySetting = find("api_key");
  const needsUrl = known?.base_url !== null;

  const attemptWork = async (work: () => Promise<void>) => {
    setProblem("");
    try {
      await work();
    } catch (error) {
      if (isConflict(error)) {
        await refresh(); // first: until then a click does nothing
        setProblem(setupWords.conflict);
      } else setProblem(error instanceof ApiError ? [...readProblems(error, new Set()).values()].join("\n") : describeError(error));
    }
  };

  const runTest = () =>
    attemptWork(async () => {
      setTesting(true);
      setTest(null);
      try {
        setTest(await testProvider({ provider: name, api_key: key || null, base_url: address, model: model || null }));
      } finally {
        setTesting(false);
      }
    });

  const save = () =>
    attemptWork(async () => {
      const set: Record<string, unknown> = {
        ...(key !== "" && { [`providers.${name}.api_key`]: key }),
        ...(address !== null && needsUrl && { [`providers.${name}.base_url`]: address }),
        ...(model !== "" && { model: `${name}:${model}` }),
      };
      await changeSettings({ set, expected_version: settings.version });
      toast(setupWords.providerSaved(known?.title ?? name));
      setKey("");
      await Promise.all([refresh(), refetch()]);
      if (model !== "") return onDone();
      const { models: found } = await listProviderModels(name);
      setModels(found.slice(0, TEST_MODEL_COUNT));
      setModel(known?.default_model != null && found.includes(known.default_model) ? known.default_model : (found[0] ?? ""));
    });

  return (
    <form
      className="settings-form provider-form"
      onSubmit={(event) => {
        event.preventDefault();
        void runOnce(save);
      }}
    >
      {existing === undefined && (
        <label className="field">
          {setupWords.provider}
          <select
            value={preset}
            onChange={(event) => {
              setPreset(event.target.value);
              setUrl("");
              setModels([]);
              setModel("");
              setTest(null);
            }}
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
      {existing === undefined && preset === OTHER && (
        <label className="field">
          {setupWords.providerName}
          <input value={ownName} required pattern="[a-z][a-z0-9_\-]*" maxLength={32} spellCheck={false} autoComplete="off" onChange={(event) => setOwnName(event.target.value)} />
          <span className="hint">{setupWords.entryNameHint}</span>
        </label>
      )}
      {needsUrl && (
        <label className="field">
          {setupWords.address}
          <input type="url" value={url} required={known === undefined} placeholder={known?.base_url ?? "https://example.org/v1"} spellCheck={false} autoComplete="off" onChange={(event) => setUrl(event.target.value)} />
        </label>
      )}
      <label className="field">
        {known?.needs_key === true ? setupWords.apiKey : setupWords.apiKeyOptional}
        <input type="password" value={key} autoComplete="off" placeholder={keySetting?.is_set === true ? "••••••••" : ""} onChange={(event) => setKey(event.target.value)} />
        <span className="hint">
          {keySetting?.is_set === true ? setupWords.secretSet(keySetting.hint) : ""}{" "}
          {known?.key_page != null && (
            <a className="text-button" href={known.key_page} target="_blank" rel="noreferrer noopener">
              {setupWords.getKey}
            </a>
          )}
        </span>
      </label>
      {models.length > 0 && (
        <label className="field">
          {setupWords.chooseModel}
          <select value={model} onChange={(event) => setModel(event.target.value)}>
            {models.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      )}
      <div className="form-actions">
        <button type="submit" className="button primary" disabled={name === ""}>
          {models.length > 0 ? setupWords.useModel : setupWords.saveProvider}
        </button>
        <button type="button" className="button" disabled={isTesting || name === ""} onClick={() => void runTest()}>
          {setupWords.test}
        </button>
        <button type="button" className="text-button" onClick={onDone}>
          {words.close}
        </button>
      </div>
      <div role="status" className="test-result" data-failed={test?.ok === false}>
        {isTesting && setupWords.testing}
        {test !== null && <TestResult test={test} />}
      </div>
      <p role="alert" className="field-problem" dir="auto">
        {problem}
      </p>
    </form>
  );
}

function TestResult({ test }: { test: ProviderTest }) {
  if (test.ok) return <p>{setupWords.testOk(test.model, test.seconds.toFixed(1))}</p>;
  return (
    <>
      <p dir="auto">
        {setupWords.testFailed} {describeFailure({ reason: test.error, ...test.facts })}
      </p>
      {test.detail !== null && (
        <p dir="auto">
          {setupWords.providerSaid} <q>{test.detail}</q>
        </p>
      )}
    </>
  );
}
