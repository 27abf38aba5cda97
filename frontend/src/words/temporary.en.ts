/** The texts of temporary conversations, in English. */
export const temporaryEn = {
  temporaryConversation: "Temporary conversation",
  temporaryOpen: "Temporary conversation (open)",
  temporaryBanner: "Temporary conversation: not saved, not in search or memory. It’s gone when you close or reload this tab.",
  temporaryHint: "The agent has no tools here and can’t see your other conversations. Files and commands aren’t available. The server still counts tokens and cost.",
  temporaryPlaceholder: "Ask something that isn’t saved",
  temporaryDelete: "Delete now",
  temporaryDeleteTitle: "Delete this temporary conversation?",
  temporaryDeleteText: "Its messages are only in this tab and can’t be restored.",
  temporaryNoFiles: "Files can’t be added to a temporary conversation.",
  temporaryOldestLeftOut: (count: number) =>
    `This conversation is very long, so the agent no longer gets its oldest ${count === 1 ? "message" : `${count} messages`}.`,
  temporaryInterruptedByShutdown: "The server shut down during this answer.",
  temporaryCutOff: "The connection was lost during this answer. What arrived stays here.",
};
