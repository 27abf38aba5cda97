/** The texts of saved prompts, the instructions of projects and the model of new conversations. */
export const promptsEn = {
  savedPrompts: "Saved prompts",
  promptsButton: "Prompts",
  promptsIntro: "Texts you use often. Choose one in the message box with / or the bookmark. Only you see them.",
  promptsEmpty: "No saved prompts yet",
  managePrompts: "Manage saved prompts",
  newPrompt: "New prompt",
  editPrompt: (name: string) => `Edit “${name}”`,
  deletePrompt: (name: string) => `Delete “${name}”`,
  deletePromptTitle: (name: string) => `Delete “${name}”?`,
  deletePromptText: "This permanently deletes the saved prompt. Messages that you sent stay.",
  promptName: "Name",
  promptText: "Text",
  promptTextHint: "{{topic}} is a placeholder: you are asked for it when you use the prompt.",
  promptFieldNames: {} as Record<string, string>, // of further fields; without one, the server's own label is shown
  insertPrompt: "Insert",
  projectInstructions: "Instructions",
  projectInstructionsHint: "The agent follows them in your own conversations of this project.",
  serverSettings: "Server settings",
};
