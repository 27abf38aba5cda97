/** The providers of models: what answers now, the providers that are connected, and a form to add one. */
import { useRef, useState } from "react";
import { useAccount } from "../../live/context";
import { confirm } from "../../ui/ConfirmDialog";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { ProviderForm } from "../forms/ProviderForm";
import { listEntries } from "../forms/sections";
import { formatValue, isPinned } from "../forms/settingValues";
import { changeSettings, useSettingsAction, type Settings } from "../forms/settingsApi";

const PLACEHOLDERS = new Set(["demo", "local"]);

export function Models({ settings }: { settings: Settings }) {
  const { me, refetch } = useAccount();
  const names = listEntries(settings, "providers");
  const [edited, setEdited] = useState<string | null>(names.length === 0 ? "" : null); // empty: a new one
  const [isAsked, setAsked] = useState(false); // for the form, which is shown without being asked for if there is no provider
  const open = (name: string) => {
    setAsked(true);
    setEdited(name);
  };
  const wasEdited = useRef(false); // then the focus goes to the button that replaces the form
  const close = () => {
    wasEdited.current = true;
    setEdited(null);
  };
  const takeFocus = (button: HTMLButtonElement | null) => {
    if (button === null || !wasEdited.current) return;
    wasEdited.current = false;
    button.focus();
  };
  const run = useSettingsAction();
  const remove = async (name: string) => {
    const question = { title: `${setupWords.removeProvider(name)}?`, text: setupWords.removeProviderText, action: words.delete };
    const edit = { unset: [`providers.${name}`], expected_version: settings.version };
    if ((await confirm(question)) && (await run(() => changeSettings(edit)))) await refetch();
  };
  return (
    <section className="card" aria-labelledby="providers-title">
      <h2 id="providers-title" className="section-title">
        {setupWords.providers}
      </h2>
      <p className="hint">{setupWords.modelsIntro}</p>
      <p role="status">{PLACEHOLDERS.has(me.agent.model) ? setupWords.placeholder : setupWords.currentModel(me.agent.model)}</p>
      {names.length > 0 && (
        <ul className="item-list" aria-label={setupWords.providers}>
          {names.map((name) => {
            const own = settings.settings.filter((each) => each.key.startsWith(`providers.${name}.`));
            const key = own.find((each) => each.key.endsWith(".api_key"));
            const url = own.find((each) => each.key.endsWith(".base_url"));
            const facts = [url?.value != null && formatValue(url.value), key?.is_set === true && setupWords.keySet(key.hint)];
            return (
              <li key={name} className="card-row provider-row">
                <div className="card-row-text">
                  <b>{settings.providers.find((each) => each.name === name)?.title ?? name}</b>
                  <small>{facts.filter(Boolean).join(" · ")}</small>
                  {own.filter(isPinned).map((each) => (
                    <small key={each.key}>
                      {each.source.kind === "file" ? setupWords.setInFile(each.source.line) : setupWords.setInEnvironment(each.source.variable)}
                    </small>
                  ))}
                </div>
                {!own.some(isPinned) && (
                  <>
                    <button type="button" className="button" aria-label={setupWords.editProvider(name)} onClick={() => open(name)}>
                      {words.editMessage}
                    </button>
                    <button type="button" className="text-button" onClick={() => void remove(name)}>
                      {setupWords.removeProvider(name)}
                    </button>
                  </>
                )}
              </li>
            );
          })}
        </ul>
      )}
      {edited !== null ? (
        <ProviderForm key={edited} settings={settings} {...(edited !== "" && { name: edited })} takesFocus={isAsked} onDone={close} />
      ) : (
        <button type="button" className="button" ref={takeFocus} onClick={() => open("")}>
          {setupWords.addProvider}
        </button>
      )}
    </section>
  );
}
