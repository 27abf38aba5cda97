/** Entries that owners name themselves, such as profiles: add one, change it, remove it. */
import { useState } from "react";
import { confirm } from "../../ui/ConfirmDialog";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { listEntries, nameCollection } from "../forms/sections";
import { quotePart } from "../forms/settingValues";
import { changeSettings, useSettingsAction, type Settings } from "../forms/settingsApi";
import { Entry } from "./Entry";

interface Props {
  settings: Settings;
  collection: string;
  modelNames: readonly string[];
}

export function Collection({ settings, collection, modelNames }: Props) {
  const [added, setAdded] = useState<readonly string[]>([]);
  const [name, setName] = useState("");
  const run = useSettingsAction();
  const existing = listEntries(settings, collection);
  const entries = [...existing, ...added.filter((each) => !existing.includes(each))];
  const title = nameCollection(collection);

  const remove = async (entry: string) => {
    if (existing.includes(entry)) {
      const text = collection === "profiles" ? setupWords.removeProfileText : "";
      if (!(await confirm({ title: `${setupWords.entryRemove(entry)}?`, text, action: words.delete }))) return;
      const edit = { unset: [`${collection}.${quotePart(entry)}`], expected_version: settings.version };
      if (!(await run(() => changeSettings(edit)))) return;
    }
    setAdded(added.filter((each) => each !== entry));
  };

  return (
    <section className="card" aria-label={title}>
      <h2 className="section-title">{title}</h2>
      {entries.map((entry) => (
        <Entry key={entry} settings={settings} collection={collection} entry={entry} isNew={added.includes(entry)} modelNames={modelNames}>
          <button type="button" className="text-button" onClick={() => void remove(entry)}>
            {setupWords.entryRemove(entry)}
          </button>
        </Entry>
      ))}
      <form
        className="add-entry"
        onSubmit={(event) => {
          event.preventDefault();
          if (!entries.includes(name.trim())) setAdded([...added, name.trim()]);
          setName("");
        }}
      >
        <label className="field">
          {collection === "profiles" ? setupWords.profileName : setupWords.entryName}
          <input value={name} required maxLength={200} spellCheck={false} autoComplete="off" onChange={(event) => setName(event.target.value)} />
        </label>
        <button type="submit" className="button" disabled={name.trim() === ""}>
          {collection === "profiles" ? setupWords.addProfile : setupWords.addEntry}
        </button>
      </form>
    </section>
  );
}
