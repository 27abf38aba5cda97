/** What this browser remembers between visits. Where storage is forbidden or full, it remembers only until the page closes. */

const PREFIX = "palaver.";
const unsaved = new Map<string, string>(); // values that storage refused; it may still hold an older one

export const storage = {
  get(name: string): string | null {
    try {
      return unsaved.get(name) ?? localStorage.getItem(PREFIX + name);
    } catch {
      return unsaved.get(name) ?? null;
    }
  },

  /** Stores a value; null deletes it. */
  set(name: string, value: string | null): void {
    unsaved.delete(name);
    try {
      if (value === null) localStorage.removeItem(PREFIX + name);
      else localStorage.setItem(PREFIX + name, value);
    } catch {
      if (value !== null) unsaved.set(name, value);
    }
  },

  getJson(name: string): unknown {
    try {
      return JSON.parse(storage.get(name) ?? "null");
    } catch {
      return null;
    }
  },
};
