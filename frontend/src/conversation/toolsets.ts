/** Sets of tools as people know them. Pure. */
import { words } from "../words";

const SERVED = "mcp:"; // how the name of a set begins that is a server's

/** What to call a set of tools. */
export function toolsetName(name: string): string {
  return words.toolsetNames[name] ?? name.replace(SERVED, "");
}

/** The switches that lead from one list of what is off back to another. */
export function switchesBack(now: readonly string[], before: readonly string[]): Record<string, boolean> {
  const on = now.filter((name) => !before.includes(name)).map((name) => [name, true] as const);
  const off = before.filter((name) => !now.includes(name)).map((name) => [name, false] as const);
  return Object.fromEntries([...on, ...off]);
}
