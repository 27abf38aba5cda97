/** Entries that owners name themselves, such as profiles: add one, change it, remove it. */
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { confirm } from "../../ui/ConfirmDialog";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { listEntries, listEntrySettings, nameCollection } from "../forms/sections";
import { SettingsForm } from "../forms/SettingsForm";
import { quotePart } from "../forms/settingValues";
import { changeSettings, useRefreshSettings, type Settings } from "../forms/settingsApi";

interface Props {
  settings: Settings;
  collection: string;
  modelNames: readonly string[];
}

export function Collection({ settings, collection, modelNames }: Props) {
  const [added, setAdded] = useState<readonly string[]>([]);
  const [name, setName] = useState("");
  const refresh = useRefreshSettings();
  const existing = listEntries(settings, collection);
  const entries = [...existing, ...added.filter((each) => !existing.includes(each))];
  const title = nameCollection(collection);

  const remove = async (entry: string) => {
    if (existing.includes(entry)) {
      const text = collection === "profiles" ? setupWords.removeProfileText : "";
      if (!(await confirm({ title: `${setupWords.entryRemove(entry)}?`, text, action: words.delete }))) return;
      if (!(await attempt(() => changeSettings({ unset: [`${collection}.${quotePart(entry)}`] })))) return;
      await refresh();
    }
    setAdded(added.filter((each) => each !== entry));
  };

  return (
    <section className="card" aria-label={title}>
      <h2 className="section-title">{title}</h2>
      {entries.map((entry) => (
        <details key={entry} className="entry" open={added.includes(entry)}>
          <summary>
            <b dir="auto">{entry}</b>
          </summary>
          <SettingsForm settings={settings} shown={listEntrySettings(settings, collection, entry)} modelNames={modelNames} hasHeadings={false} />
          <button type="button" className="text-button" onClick={() => void remove(entry)}>
            {setupWords.entryRemove(entry)}
          </button>
        </details>
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
