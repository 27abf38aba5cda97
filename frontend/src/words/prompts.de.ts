/** The texts of saved prompts, the instructions of projects and the model of new conversations, in German. */
import type { Words } from "./en";
import type { promptsEn } from "./prompts.en";

export const promptsDe: Pick<Words, keyof typeof promptsEn> = {
  savedPrompts: "Gespeicherte Prompts",
  promptsButton: "Prompts",
  promptsIntro: "Texte, die du oft brauchst. Wähle sie im Nachrichtenfeld mit / oder dem Lesezeichen. Nur du siehst sie.",
  promptsEmpty: "Noch keine gespeicherten Prompts",
  managePrompts: "Gespeicherte Prompts verwalten",
  newPrompt: "Neuer Prompt",
  editPrompt: (name) => `„${name}“ bearbeiten`,
  deletePrompt: (name) => `„${name}“ löschen`,
  deletePromptTitle: (name) => `„${name}“ löschen?`,
  deletePromptText: "Der gespeicherte Prompt wird endgültig gelöscht. Gesendete Nachrichten bleiben.",
  promptName: "Name",
  promptText: "Text",
  promptTextHint: "{{thema}} ist ein Platzhalter: Du wirst danach gefragt, wenn du den Prompt verwendest.",
  insertPrompt: "Einfügen",
  projectInstructions: "Anweisungen",
  projectInstructionsHint: "Der Agent befolgt sie in deinen eigenen Chats dieses Projekts.",
  serverSettings: "Servereinstellungen",
};
