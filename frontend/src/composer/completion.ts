/** Completion of slash commands. Pure. */
import type { Command } from "../api/types";

/** The commands that start with the text; none if the text is not the start of a command. */
export function findCompletions(text: string, commands: readonly Command[]): readonly Command[] {
  const prefix = /^\/(\w*)$/.exec(text)?.[1]?.toLowerCase();
  if (prefix === undefined) return [];
  return commands.filter((command) => command.name.slice(1).startsWith(prefix));
}

/** The text for a chosen command, followed by a space if it takes arguments. */
export function completeCommand(command: Command): string {
  return command.usage === "" ? command.name : `${command.name} `;
}
