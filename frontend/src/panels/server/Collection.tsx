/** Entries that owners name themselves, such as profiles: add one, change it, remove it. */
import { useId, useState } from "react";
import { confirm } from "../../ui/ConfirmDialog";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { listEntries, nameCollection } from "../forms/sections";
import { quotePart } from "../forms/settingValues";
import { changeSettings, useSettingsAction, type Settings } from "../forms/settingsApi";
import { Entry } from "./Entry";
import { describeEntryName, listBuiltInNames, listEntryNames } from "./entryNames";

interface Props {
  settings: Settings;
  collection: string;
  modelNames: readonly string[];
}

export function Collection({ settings, collection, modelNames }: Props) {
  const [added, setAdded] = useState<readonly string[]>([]);
  const run = useSettingsAction();
  const existing = listEntries(settings, collection);
  const builtIn = listBuiltInNames(collection);
  const entries = [...new Set([...builtIn, ...existing, ...added])];
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
      {collection in setupWords.collectionHints && <p className="hint">{setupWords.collectionHints[collection]}</p>}
      {entries.map((entry) => (
        <Entry key={entry} settings={settings} collection={collection} entry={entry} isNew={added.includes(entry)} modelNames={modelNames}>
          {!builtIn.includes(entry) && (
            <button type="button" className="text-button" onClick={() => void remove(entry)}>
              {setupWords.entryRemove(entry)}
            </button>
          )}
        </Entry>
      ))}
      <AddEntry settings={settings} collection={collection} entries={entries} modelNames={modelNames} onAdd={(entry) => setAdded([...added, entry])} />
    </section>
  );
}

const ANY_NAME = { maxLength: 200 };
const PROFILE_NAME = { maxLength: 32, pattern: "[a-z0-9][a-z0-9_\\-]*", title: setupWords.entryNameHint };

interface AddEntryProps extends Props {
  entries: readonly string[];
  onAdd: (entry: string) => void;
}

/** Chooses the name of a new entry, or asks for it where any name is possible. */
function AddEntry({ settings, collection, modelNames, entries, onAdd }: AddEntryProps) {
  const [text, setText] = useState("");
  const list = useId();
  const isProfile = collection === "profiles";
  const offered = listEntryNames(settings, collection, modelNames);
  const names = offered.names.filter((each) => !entries.includes(each));
  const name = offered.isOpen || names.includes(text) ? text.trim() : (names[0] ?? "");
  if (!offered.isOpen && names.length === 0) return null; // each has its entry
  return (
    <form
      className="add-entry"
      onSubmit={(event) => {
        event.preventDefault();
        if (!entries.includes(name)) onAdd(name);
        setText("");
      }}
    >
      <label className="field">
        {collection === "profiles" ? setupWords.profileName : setupWords.entryName}
        {offered.isOpen ? (
          <>
            <input list={list} value={text} required {...(isProfile ? PROFILE_NAME : ANY_NAME)} spellCheck={false} autoCapitalize="none" autoComplete="off" onChange={(event) => setText(isProfile ? event.target.value.toLowerCase().replace(/\s/g, "-") : event.target.value)} />
            <datalist id={list}>
              {names.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          </>
        ) : (
          <select value={name} onChange={(event) => setText(event.target.value)}>
            {names.map((each) => (
              <option key={each} value={each}>
                {describeEntryName(collection, each)}
              </option>
            ))}
          </select>
        )}
      </label>
      <button type="submit" className="button" disabled={name === ""}>
        {collection === "profiles" ? setupWords.addProfile : setupWords.addEntry}
      </button>
    </form>
  );
}
