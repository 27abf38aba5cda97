/** Which settings are shown where, and the entries that a person can add, such as a profile. Pure. */
import { namePart } from "./settingNames";
import { quotePart, splitKey } from "./settingValues";
import type { Setting, Settings, SettingTemplate } from "./settingsApi";

const NAME = "<name>";
const SECTION_PREFIXES = {
  models: ["model", "fallback_models", "models_by_role", "instructions", "context_windows", "prices"],
  profiles: ["profiles", "personalities", "chats"],
  conversations: ["timezone", "language", "session_reset", "reset_by_platform", "reset_by_type", "sessions", "compaction", "retention", "privacy"],
  turns: ["turns", "speech"],
  tools: ["toolsets", "mcp_servers"],
  memory: ["memory"],
  budgets: ["budgets"],
  jobs: ["jobs", "backup"],
  people: ["people"],
  web: ["web", "push", "agent", "database_url"],
} as const;
export const BUILT_IN_PLATFORMS = ["web", "local", "api"];
const OWN_SCREENS = new Set(["providers", "platforms"]);

export const SECTION_IDS = [...Object.keys(SECTION_PREFIXES), "other"];

/** The section of a setting; null if another screen shows it. */
export function findSection(key: string): string | null {
  const first = splitKey(key)[0] ?? "";
  if (OWN_SCREENS.has(first)) return null;
  return Object.entries(SECTION_PREFIXES).find(([, prefixes]) => (prefixes as readonly string[]).includes(first))?.[0] ?? "other";
}

/** The collections of a section: `toolsets` for `toolsets.<name>.enabled`. */
export function listCollections(settings: Settings, section: string): string[] {
  const found = settings.templates.flatMap(({ key }) =>
    key.includes(`.${NAME}`) && findSection(key) === section ? [key.slice(0, key.indexOf(`.${NAME}`))] : [],
  );
  return [...new Set(found)].sort((one, other) => findPosition(section, one) - findPosition(section, other));
}

/** Where a collection is listed in its section. */
function findPosition(section: string, key: string): number {
  const prefixes: readonly string[] = section in SECTION_PREFIXES ? SECTION_PREFIXES[section as keyof typeof SECTION_PREFIXES] : [];
  return prefixes.indexOf(splitKey(key)[0] ?? "");
}

/** The names of the entries of a collection that exist. */
export function listEntries(settings: Settings, collection: string): string[] {
  const depth = collection.split(".").length;
  const names = settings.settings.flatMap((setting) =>
    setting.template.startsWith(`${collection}.${NAME}`) && isInUse(setting) ? [splitKey(setting.key)[depth] ?? ""] : [],
  );
  return [...new Set(names)];
}

const isInUse = ({ source, is_set }: Setting) => is_set || source.kind !== "default";

/** The settings of one entry, also those that are not set yet; without names within names, such as headers. */
export function listEntrySettings(settings: Settings, collection: string, name: string): Setting[] {
  const prefix = `${collection}.${NAME}`;
  const own = `${collection}.${quotePart(name)}`;
  const known = new Map(settings.settings.map((setting) => [setting.key, setting]));
  const listed = settings.templates.flatMap((template) => {
    if (template.key !== prefix && !template.key.startsWith(`${prefix}.`)) return [];
    const rest = template.key.slice(prefix.length);
    if (rest.includes(NAME)) return settings.settings.filter((each) => each.template === template.key && each.key.startsWith(`${own}.`));
    const key = own + rest;
    return [known.get(key) ?? makeSetting(key, template)];
  });
  return listed;
}

/** The maps within one entry to which names can be added on the page, such as `headers`: the template of each. */
export function listNestedTemplates(settings: Settings, collection: string): SettingTemplate[] {
  const prefix = `${collection}.${NAME}.`;
  return settings.templates.filter(
    ({ key, is_terminal_only }) => key.startsWith(prefix) && key.slice(prefix.length).endsWith(`.${NAME}`) && !is_terminal_only,
  );
}

/** The key of a new name in such a map of an entry. */
export function makeNestedKey(template: SettingTemplate, entry: string, name: string): string {
  const at = template.key.indexOf(NAME);
  const rest = template.key.slice(at + NAME.length).replace(NAME, () => quotePart(name));
  return template.key.slice(0, at) + quotePart(entry) + rest;
}

/** A setting that is not set yet. */
export function makeSetting(key: string, template: SettingTemplate): Setting {
  return {
    key,
    template: template.key,
    value: template.default ?? null,
    is_set: false,
    is_secret: template.is_secret,
    hint: null,
    source: { kind: "default", variable: null, line: null, set_at: null, set_by: null },
    can_change: !template.is_terminal_only && template.unstorable_reason === null,
    problem: null,
  };
}

/** The settings of a section that are in no collection. */
export function listPlainSettings(settings: Settings, section: string): Setting[] {
  const own = settings.settings.filter((setting) => !setting.template.includes(NAME) && findSection(setting.key) === section);
  return section === "turns" ? [...own, ...listBuiltInBusyPolicies(settings)] : own;
}

/** What happens to messages while the agent responds, on the platforms that are always there and have no page to set them up. */
function listBuiltInBusyPolicies(settings: Settings): Setting[] {
  const template = settings.templates.find(({ key }) => key === `platforms.${NAME}.busy_policy`);
  if (template === undefined) return [];
  const keys = BUILT_IN_PLATFORMS.map((platform) => `platforms.${platform}.busy_policy`);
  return keys.map((key) => settings.settings.find((setting) => setting.key === key) ?? makeSetting(key, template));
}

/** What a person enters as a collection's name, for a heading. */
export function nameCollection(collection: string): string {
  return collection.split(".").map(namePart).join(" › ");
}
