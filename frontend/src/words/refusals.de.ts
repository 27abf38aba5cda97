/** Warum der Server etwas nicht tut, auf Deutsch. */
import type { Told } from "./index";
import type { refusalsEn } from "./refusals.en";

export const refusalsDe: Record<keyof typeof refusalsEn, (facts: Told) => string | null> = {
  not_signed_in: () => "Du bist nicht mehr angemeldet.",
  sign_in_refused: ({ way }) => {
    const ways: Record<string, string> = {
      link: "Dieser Link ist verbraucht oder zu alt.",
      password: "Dieser Name und dieses Passwort gehören nicht zusammen.",
      passkey: "Dieser Passkey ist hier nicht bekannt, oder es hat zu lange gedauert. Versuche es noch einmal, oder melde dich anders an.",
    };
    return ways[way ?? ""] ?? null;
  },
  too_many_attempts: ({ retry_after }) => `Zu viele Versuche. Versuche es in ${retry_after} Sekunden noch einmal.`,
  wrong_password: () => "Das ist nicht dein jetziges Passwort.",
  wrong_passkey: () => "Dieser Passkey ließ sich nicht prüfen. Fang noch einmal an.",
  weak_password: ({ least, limit }) =>
    least === undefined
      ? "Dieses Passwort würde jeder mit als erstes versuchen. Ein paar Wörter hintereinander sind besser."
      : `Ein Passwort hat ${least} bis ${limit} Zeichen.`,

  invalid_name: ({ limit }) => (limit === undefined ? null : `Ein Name ist eine Zeile mit 1 bis ${limit} Zeichen.`),
  name_taken: ({ name }) => `„${name}“ heißt schon jemand, der sich anmelden kann. Nimm einen anderen Namen.`,
  invalid_title: ({ limit }) =>
    limit === undefined ? "Ein Titel braucht wenigstens ein sichtbares Zeichen." : `Ein Titel hat höchstens ${limit} Zeichen.`,
  title_taken: ({ title, free }) => `Ein Gespräch namens „${title}“ hast du schon; „${free}“ ist frei.`,
  project_taken: ({ name }) => `Ein Projekt namens „${name}“ hast du schon. Nimm einen anderen Namen.`,

  no_such_session: () => "Dieses Gespräch gibt es nicht, oder es ist nicht deins.",
  no_such_project: () => "Dieses Projekt gibt es nicht mehr.",
  no_such_share: () => "Diese Kopie gibt es nicht mehr.",
  no_such_attachment: () => "Diese Datei gibt es nicht mehr.",
  owner_only: ({ action }) =>
    action === undefined
      ? "Das darf nur, wem dieses Gateway gehört."
      : "Dieses Gespräch gehört mehreren; das darf hier nur, wem dieses Gateway gehört.",
  still_answering: () => "Der Agent antwortet in diesem Gespräch noch. Warte auf ihn, oder halte ihn erst an.",
  nothing_to_undo: () => "Es gibt nichts mehr zurückzunehmen.",
  nothing_to_redo: () => "Es gibt nichts zurückzuholen: Nichts wurde zurückgenommen, oder das Gespräch ging weiter.",
  nothing_to_restore: () => "Hier gibt es nichts rückgängig zu machen.",
  too_little: ({ limit }) => `Zum Zusammenfassen ist es zu wenig: Es braucht wenigstens ${limit} Nachrichten.`,
  already_remembered: () => "Dasselbe ist schon gemerkt. Vergiss eines von beiden.",
  not_reachable: ({ platform }) =>
    platform === undefined
      ? "Dieses Gespräch findet nirgends sonst statt, also lässt sich nichts dorthin senden. Lies die Antwort hier."
      : `${platform} ist mit diesem Server nicht verbunden, also lässt sich nichts dorthin senden. Lies die Antwort hier.`,

  limit_reached: ({ what, limit, most }) => {
    const room: Record<string, string> = {
      tokens: `Du hast schon ${limit} Tokens. Widerrufe erst eins.`,
      passkeys: `Du hast schon ${limit} Passkeys. Entferne erst einen.`,
      shares: `Du teilst schon ${limit} Gespräche. Nimm erst eins zurück.`,
      memories: `${limit} Dinge sind schon gemerkt. Vergiss erst eins.`,
      bytes: `Deine Dateien haben zusammen ${most}; mehr wird nicht aufgehoben. Lösche Gespräche mit Dateien.`,
    };
    return room[what ?? ""] ?? null;
  },
  queue_full: ({ limit }) => `Hier warten schon ${limit} Nachrichten. Sende sie später noch einmal, oder halte die Antwort an.`,
  too_long: ({ limit }) => `Diese Nachricht ist zu lang: ${limit} Zeichen werden höchstens angenommen.`,
  too_large: () => "Das ist größer, als hier angenommen wird.",
  attachment_too_large: ({ most }) => `Diese Datei ist zu groß: Höchstens ${most} werden angenommen.`,
  attachment_refused: () => "Dateien dieser Art werden nicht angenommen. Sende ein Bild, ein PDF, einen Ton oder Text in UTF-8.",
  invalid_request: ({ where, limit }) =>
    limit === undefined ? null : `Hier darf es höchstens ${limit} sein: ${where?.replace(/^body\./, "")}.`,

  store_busy: () => "Die Datenbank ist beschäftigt. Versuche es gleich noch einmal.",
  store_full: () => "Die Festplatte des Servers ist voll; nichts wurde gespeichert.",
  store_read_only: () => "Die Datenbank des Servers lässt sich nicht beschreiben; nichts wurde gespeichert.",
  store_unavailable: () => "Die Datenbank des Servers ist nicht erreichbar; nichts wurde gespeichert.",
  internal_error: () => "In Palaver ist etwas schiefgegangen; mehr steht in seinem Protokoll.",
};
