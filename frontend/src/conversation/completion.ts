/** Completing a slash command. Pure. */
import type { Command } from "../api/types";

/** The commands a text may be the beginning of; none when it is not the beginning of a command. */
export function completions(text: string, commands: readonly Command[]): readonly Command[] {
  const begun = /^\/(\w*)$/.exec(text)?.[1]?.toLowerCase();
  if (begun === undefined) return [];
  return commands.filter((command) => command.name.slice(1).startsWith(begun));
}

/** What a text becomes when a command is chosen: with a blank behind it, where it takes more words. */
export function completed(command: Command): string {
  return command.usage === "" ? command.name : `${command.name} `;
}
