/** What this browser remembers. Where storage is forbidden or full, things are simply forgotten with the page. */

const PREFIX = "palaver.";
const forgotten = new Map<string, string>(); // what storage did not take; an older value may still lie there

export function recall(name: string): string | null {
  try {
    return forgotten.get(name) ?? localStorage.getItem(PREFIX + name);
  } catch {
    return forgotten.get(name) ?? null;
  }
}

export function keep(name: string, value: string | null): void {
  forgotten.delete(name);
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    if (value !== null) forgotten.set(name, value);
  }
}

export function recallJson(name: string): unknown {
  try {
    return JSON.parse(recall(name) ?? "null");
  } catch {
    return null;
  }
}
