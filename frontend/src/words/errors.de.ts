/** The server's errors in German. */
import type { errorsEn } from "./errors.en";
import type { ErrorFacts } from "./index";

export const errorsDe: Record<keyof typeof errorsEn, (facts: ErrorFacts) => string | null> = {
  not_signed_in: () => "Du wurdest abgemeldet.",
  sign_in_failed: ({ method }) => {
    const methods: Record<string, string> = {
      link: "Dieser Link ist abgelaufen oder wurde schon verwendet.",
      password: "Name oder Passwort falsch.",
      passkey: "Passkey nicht erkannt oder Zeit abgelaufen. Versuche es erneut oder melde dich anders an.",
    };
    return methods[method ?? ""] ?? null;
  },
  too_many_requests: () => "Du hast zu viele Anfragen offen. Warte, bis einige davon beendet sind.",
  too_many_streams: () => "Palaver ist in zu vielen Tabs oder Programmen geöffnet. Schließe einige davon.",
  too_many_attempts: ({ retry_after }) => `Zu viele Versuche. Versuche es in ${retry_after} Sekunden erneut.`,
  wrong_password: () => "Das ist nicht dein aktuelles Passwort.",
  wrong_passkey: () => "Passkey konnte nicht geprüft werden. Versuche es erneut.",
  weak_password: ({ minimum, limit }) =>
    minimum === undefined
      ? "Dieses Passwort ist zu einfach zu erraten. Versuche es mit mehreren Wörtern."
      : `Passwörter brauchen ${minimum} bis ${limit} Zeichen.`,

  invalid_name: ({ limit }) => (limit === undefined ? null : `Namen brauchen 1 bis ${limit} Zeichen in einer Zeile.`),
  name_taken: ({ name }) => `Der Name „${name}“ ist vergeben. Wähle einen anderen.`,
  invalid_title: ({ limit }) =>
    limit === undefined ? "Ein Titel braucht mindestens ein sichtbares Zeichen." : `Titel dürfen höchstens ${limit} Zeichen haben.`,
  title_taken: ({ title, available_title }) => `Du hast bereits einen Chat namens „${title}“. Wie wäre es mit „${available_title}“?`,
  project_name_taken: ({ name }) => `Du hast bereits ein Projekt namens „${name}“. Wähle einen anderen Namen.`,

  settings_changed: () => "Jemand anderes hat die Einstellungen inzwischen geändert. Prüfe sie und versuche es noch einmal.",
  session_not_found: () => "Chat nicht gefunden. Er wurde möglicherweise gelöscht, oder du hast keinen Zugriff.",
  project_not_found: () => "Projekt nicht gefunden. Es wurde möglicherweise gelöscht.",
  share_expired: () => "Dieser Link ist abgelaufen.",
  share_not_found: () => "Dieser geteilte Link existiert nicht mehr.",
  attachment_not_found: () => "Diese Datei existiert nicht mehr.",
  owner_required: ({ action }) =>
    action === undefined
      ? "Das kann nur der Besitzer des Servers."
      : "Mehrere Personen teilen sich diesen Chat. Das kann nur der Besitzer des Servers.",
  import_not_found: () => "Import nicht gefunden. Er wurde vielleicht gelöscht, oder du hast keinen Zugriff.",
  import_too_large: ({ limit_bytes }) => `Diese Datei ist zu groß. Das Limit liegt bei ${limit_bytes}.`,
  unknown_export: ({ name }) =>
    `„${name}“ ist kein Export, den Palaver kennt. Nimm die .zip- oder .json-Datei deines Exports aus ChatGPT, Claude oder Open WebUI oder eine Datei, die Palaver exportiert hat.`,
  database_not_imported: ({ name }) =>
    `„${name}“ ist eine Datenbank und kein Export deiner eigenen Chats. Exportiere deine Chats in Open WebUI als JSON-Datei und importiere diese.`,
  command_unavailable: () => "In einem temporären Chat funktionieren keine Befehle.",
  session_busy: () => "Der Agent antwortet noch. Warte, bis er fertig ist, oder stoppe ihn zuerst.",
  nothing_to_undo: () => "Nichts zum Rückgängigmachen.",
  nothing_to_redo: () => "Nichts zum Wiederherstellen: Es wurde nichts rückgängig gemacht, oder der Chat ging danach weiter.",
  nothing_to_restore: () => "Hier gibt es nichts wiederherzustellen.",
  nothing_to_compact: ({ limit }) => `Zu kurz zum Komprimieren: ${limit === "1" ? "Mindestens 1 Nachricht ist" : `Mindestens ${limit} Nachrichten sind`} nötig.`,
  job_not_found: () => "Aufgabe nicht gefunden. Sie wurde möglicherweise gelöscht, oder du hast keinen Zugriff.",
  job_name_taken: ({ name }) => `Du hast bereits eine Aufgabe namens „${name}“. Bearbeite diese oder wähle einen anderen Namen.`,
  job_running: () => "Diese Aufgabe läuft bereits. Warte, bis sie fertig ist.",
  invalid_input: ({ schedule, timezone }) => {
    if (schedule !== undefined) {
      return `„${schedule}“ ist kein gültiger Zeitplan. Beispiele: „30m“, „every 2h“, „0 7 * * 1-5“, „2026-12-24 18:00“. Zeitpunkte müssen in der Zukunft liegen, Läufe mindestens 5 Minuten auseinander.`;
    }
    return timezone === undefined ? null : `„${timezone}“ ist keine Zeitzone. Schreibe sie zum Beispiel so: Europe/Berlin.`;
  },
  duplicate_memory: () => "Diese Erinnerung gibt es schon.",
  chat_not_reachable: ({ platform }) =>
    platform === undefined
      ? "Dieser Chat ist mit keiner Chat-Plattform verbunden. Wähle „Hier antworten“."
      : `${platform} ist nicht verbunden. Wähle „Hier antworten“ oder verbinde die Plattform.`,
  account_not_running: () => "Kein Server betreibt dieses Konto. Starte den Server, der die Verbindung herstellen soll.",

  file_quota_reached: ({ what, limit, limit_bytes }) =>
    what === "files"
      ? `Du hast das Limit von ${limit} Dateien erreicht. Lösche Chats mit Dateien, um Platz zu schaffen.`
      : `Dein Dateispeicher (${limit_bytes}) ist voll. Lösche Chats mit Dateien, um Platz zu schaffen.`,
  limit_reached: ({ what, limit }) => {
    const room: Record<string, string> = {
      tokens: `Du hast das Limit von ${limit} Tokens erreicht. Widerrufe zuerst eines.`,
      passkeys: `Du hast das Limit von ${limit} Passkeys erreicht. Entferne zuerst einen.`,
      shares: `Du hast das Limit von ${limit} geteilten Links erreicht. Beende zuerst das Teilen eines Links.`,
      jobs: `Du hast das Limit von ${limit} Aufgaben erreicht. Lösche zuerst eine.`,
      memories: `Du hast das Limit von ${limit} Erinnerungen erreicht. Lösche zuerst eine.`,
      imports: `${limit} deiner Dateien warten auf den Import. Importiere oder lösche zuerst eine.`,
      temporary_answers: "Zu viele temporäre Chats werden gerade beantwortet. Warte, bis einer fertig ist, oder stoppe ihn.",
    };
    return room[what ?? ""] ?? null;
  },
  queue_full: ({ limit }) => `Die Warteschlange ist voll (${limit === "1" ? "1 Nachricht" : `${limit} Nachrichten`}). Versuche es später erneut oder stoppe den Agenten.`,
  too_many_messages: ({ retry_after }) => `Du sendest zu schnell. Versuche es in ${retry_after === "1" ? "1 Sekunde" : `${retry_after} Sekunden`} erneut.`,
  too_long: ({ limit }) => `Diese Nachricht ist zu lang. Das Limit liegt bei ${limit} Zeichen.`,
  too_large: () => "Das ist zu groß.",
  attachment_too_large: ({ limit_bytes }) => `Diese Datei ist zu groß. Das Limit liegt bei ${limit_bytes}.`,
  unsupported_file_type: () => "Dieser Dateityp wird nicht unterstützt. Sende ein Bild, ein PDF, ein Office-Dokument, Audio oder eine UTF-8-Textdatei.",
  invalid_request: ({ field, limit }) =>
    limit === undefined ? null : `Das Limit für ${field?.replace(/^body\./, "")} liegt bei ${limit}.`,

  store_busy: () => "Die Datenbank ist ausgelastet. Versuche es gleich erneut.",
  attachments_unavailable: () =>
    "Dateien können gerade nicht gespeichert oder geöffnet werden. Bitte den Betreiber, den Ordner für Anhänge auf dem Server zu prüfen.",
  store_full: () => "Die Festplatte des Servers ist voll. Es wurde nichts gespeichert.",
  store_read_only: () => "Die Datenbank des Servers ist schreibgeschützt. Es wurde nichts gespeichert.",
  store_file_lost: () =>
    "Die Datenbankdatei des Servers wurde entfernt oder ersetzt. Es kann nichts gespeichert werden, bis der Betreiber sie zurücklegt.",
  store_unavailable: () => "Der Server erreicht seine Datenbank nicht. Es wurde nichts gespeichert.",
  internal_error: () => "Etwas ist schiefgelaufen. Details stehen im Serverprotokoll.",
};
