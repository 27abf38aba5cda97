/** The texts of temporary conversations, in German. */
import type { Words } from "./en";
import type { temporaryEn } from "./temporary.en";

export const temporaryDe: Pick<Words, keyof typeof temporaryEn> = {
  temporaryConversation: "Temporärer Chat",
  temporaryOpen: "Temporärer Chat (offen)",
  temporaryBanner: "Temporärer Chat: wird nicht gespeichert und erscheint weder in der Suche noch in Erinnerungen. Er ist weg, wenn du diesen Tab schließt oder neu lädst.",
  temporaryHint: "Der Agent hat hier keine Tools und sieht deine anderen Chats nicht. Dateien und Befehle gibt es hier nicht. Tokens und Kosten zählt der Server trotzdem.",
  temporaryPlaceholder: "Frag etwas, das nicht gespeichert wird",
  temporaryDelete: "Jetzt löschen",
  temporaryDeleteTitle: "Diesen temporären Chat löschen?",
  temporaryDeleteText: "Seine Nachrichten sind nur in diesem Tab und lassen sich nicht wiederherstellen.",
  temporaryNoFiles: "In einem temporären Chat kannst du keine Dateien anhängen.",
  temporaryOldestLeftOut: (count) =>
    `Dieser Chat ist sehr lang, deshalb bekommt der Agent ${count === 1 ? "die älteste Nachricht" : `die ältesten ${count} Nachrichten`} nicht mehr.`,
  temporaryInterruptedByShutdown: "Der Server wurde während dieser Antwort beendet.",
  temporaryCutOff: "Die Verbindung ist während dieser Antwort abgebrochen. Was angekommen ist, bleibt hier stehen.",
};
