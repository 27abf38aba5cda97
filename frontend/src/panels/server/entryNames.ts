/** The names that an entry of a collection can have: some only the server's own, others any text. */
import { getPlatformName } from "../../format/platforms";
import { words } from "../../words";
import { BUILT_IN_PLATFORMS, listEntries } from "../forms/sections";
import type { Settings } from "../forms/settingsApi";
import { nameChoice } from "../forms/settingNames";

const ROLES = ["owner", "member", "guest"];

export interface EntryNames {
  names: readonly string[];
  isOpen: boolean; // whether an entry can have another name, too
}

/** The entries that are always there, also while nothing in them is changed. */
export function listBuiltInNames(collection: string): readonly string[] {
  return collection === "toolsets" ? Object.keys(words.toolsetNames) : [];
}

/** The names to offer for a new entry. */
export function listEntryNames(settings: Settings, collection: string, modelNames: readonly string[]): EntryNames {
  switch (collection) {
    case "toolsets":
      return { names: listBuiltInNames(collection), isOpen: false };
    case "reset_by_platform":
      return { names: [...BUILT_IN_PLATFORMS, ...settings.platforms.map(({ platform }) => platform)], isOpen: false };
    case "reset_by_type":
      return { names: Object.keys(words.chatTypes), isOpen: false };
    case "models_by_role":
    case "people.messages_per_minute":
      return { names: ROLES, isOpen: false };
    case "context_windows":
    case "prices":
      return { names: modelNames, isOpen: true };
    case "budgets.profiles":
      return { names: listEntries(settings, "profiles"), isOpen: true };
    default:
      return { names: [], isOpen: true };
  }
}

/** What an entry is called elsewhere on the page, if its name is one of the server's own; otherwise empty. */
export function describeEntryName(collection: string, name: string): string {
  if (collection === "toolsets") return words.toolsetNames[name] ?? "";
  if (collection === "reset_by_platform") return getPlatformName(name);
  if (collection === "models_by_role" || collection === "people.messages_per_minute") return nameChoice("roles", name);
  return collection === "reset_by_type" ? (words.chatTypes[name] ?? "") : "";
}
