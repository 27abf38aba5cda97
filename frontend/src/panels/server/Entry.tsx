/** One entry that the owner named, such as a profile or an MCP server: its settings, and the names within it. */
import { useState, type ReactNode } from "react";
import { ProfilePicture } from "../../agent/ProfilePicture";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { listEntrySettings, listNestedTemplates, makeNestedKey, makeSetting, nameCollection } from "../forms/sections";
import { SettingsForm } from "../forms/SettingsForm";
import { formatValue, quotePart, splitKey } from "../forms/settingValues";
import type { Setting, Settings, SettingTemplate } from "../forms/settingsApi";
import { describeEntryName } from "./entryNames";
import { nameChoice } from "../forms/settingNames";

interface Props {
  settings: Settings;
  collection: string;
  entry: string;
  isNew: boolean;
  modelNames: readonly string[];
  children: ReactNode; // what can be done with it
}

export function Entry({ settings, collection, entry, isNew, modelNames, children }: Props) {
  const [added, setAdded] = useState<readonly Setting[]>([]);
  const stored = listEntrySettings(settings, collection, entry);
  const known = new Set(stored.map(({ key }) => key));
  if (added.some(({ key }) => known.has(key))) setAdded(added.filter(({ key }) => !known.has(key))); // stored now
  const shown = [...stored, ...added.filter(({ key }) => !known.has(key))];
  const find = (part: string) => formatValue(stored.find(({ key }) => key === `${collection}.${quotePart(entry)}.${part}`)?.value);
  const [picture, title] = collection === "profiles" ? [find("picture"), find("title")] : ["", describeEntryName(collection, entry)];
  const isToolset = collection === "toolsets";
  return (
    <details className="entry" open={isNew}>
      <summary>
        <span className={isToolset ? undefined : "profile-name"}>
          {picture !== "" && <ProfilePicture url={picture} />}
          <b dir="auto">{isToolset ? title : entry}</b>{" "}
          {title !== "" && <span dir="auto">{isToolset ? (words.toolsetHints[entry] ?? "") : title}</span>}
        </span>
        {isToolset && <span className="tag entry-state">{describeToolset(stored)}</span>}
      </summary>
      <SettingsForm settings={settings} shown={shown} modelNames={modelNames} namedParts={splitKey(collection).length + 1} />
      {listNestedTemplates(settings, collection).map((template) => (
        <AddNestedEntry key={template.key} template={template} onAdd={(name) => setAdded([...added, makeSetting(makeNestedKey(template, entry, name), template)])} />
      ))}
      {children}
    </details>
  );
}

/** Whether the agent has a toolset, and for whom. */
function describeToolset(stored: readonly Setting[]): string {
  const find = (part: string) => stored.find(({ key }) => key.endsWith(`.${part}`))?.value;
  if (find("enabled") === false) return setupWords.toolsetOff;
  const roles = find("roles");
  return setupWords.toolsetOn(Array.isArray(roles) ? roles.map((role) => nameChoice("roles", String(role))).join(", ") : "");
}

/** Adds a name to a map within an entry, such as an HTTP header. */
function AddNestedEntry({ template, onAdd }: { template: SettingTemplate; onAdd: (name: string) => void }) {
  const [name, setName] = useState("");
  const collection = nameCollection(splitKey(template.key).at(-2) ?? "");
  return (
    <form
      className="add-entry"
      onSubmit={(event) => {
        event.preventDefault();
        onAdd(name.trim());
        setName("");
      }}
    >
      <label className="field">
        {setupWords.nestedName(collection)}
        <input value={name} required maxLength={100} spellCheck={false} autoComplete="off" onChange={(event) => setName(event.target.value)} />
      </label>
      <button type="submit" className="button" disabled={name.trim() === ""}>
        {setupWords.addNested(collection)}
      </button>
    </form>
  );
}
