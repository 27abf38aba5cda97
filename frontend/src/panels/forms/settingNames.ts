/** What settings and their values are called. The server says it, together with the settings. */
import type { components } from "../../api/schema";

type Names = components["schemas"]["SettingNamesJson"];

let names: Names = { parts: {}, choices: {} };

export function setNames(loaded: Names): void {
  names = loaded;
}

/** The name of a part of a key; the part itself if the owner chose it. */
export function namePart(part: string): string {
  return find(names.parts, part) ?? part;
}

/** The name of a value that can be chosen; `part` is the last part of the setting's key. */
export function nameChoice(part: string, value: string): string {
  return find(find(names.choices, part) ?? {}, value) ?? value;
}

const find = <T>(all: Readonly<Record<string, T>>, name: string) => (Object.hasOwn(all, name) ? all[name] : undefined);
