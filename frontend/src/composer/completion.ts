/** Completion of slash commands and saved prompts. Pure. */
import type { Command, SavedPrompt } from "../api/types";

export interface Completion {
  name: string;
  usage: string;
  summary: string;
  prompt?: SavedPrompt; // undefined: a command
}

const MAX_SUMMARY_CHARS = 120;

/** The commands, then the saved prompts, that start with the text; none if the text is not the start of one. */
export function findCompletions(text: string, commands: readonly Command[], prompts: readonly SavedPrompt[] = []): readonly Completion[] {
  if (!text.startsWith("/") || text.includes("\n")) return [];
  const prefix = text.slice(1).toLowerCase();
  return [
    ...(/^\w*$/.test(prefix) ? commands.filter((command) => command.name.slice(1).startsWith(prefix)) : []),
    ...prompts
      .filter((prompt) => prompt.name.toLowerCase().startsWith(prefix))
      .map((prompt) => ({ name: `/${prompt.name}`, usage: "", summary: prompt.text.slice(0, MAX_SUMMARY_CHARS), prompt })),
  ];
}

/** The text for a chosen command, followed by a space if it takes arguments. */
export function completeCommand(command: Completion): string {
  return command.usage === "" ? command.name : `${command.name} `;
}
