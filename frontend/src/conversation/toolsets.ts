/** The names of toolsets, and how to revert a change of them. Pure. */
import { words } from "../words";

const MCP_PREFIX = "mcp:"; // of a toolset that an MCP server provides

export function getToolsetName(name: string): string {
  return words.toolsetNames[name] ?? name.replace(MCP_PREFIX, "");
}

/** The switches that lead from one list of disabled toolsets back to another. */
export function buildToolsetRevert(current: readonly string[], previous: readonly string[]): Record<string, boolean> {
  const on = current.filter((name) => !previous.includes(name)).map((name) => [name, true] as const);
  const off = previous.filter((name) => !current.includes(name)).map((name) => [name, false] as const);
  return Object.fromEntries([...on, ...off]);
}
