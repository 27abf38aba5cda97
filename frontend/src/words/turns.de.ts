/** What the server reports about a turn, in German. */
import { nameBudgetDe } from "./budgets.de";
import type { ErrorFacts, ErrorTexts } from "./index";
import type { failuresEn, noticesEn } from "./turns.en";

export const failuresDe: Record<keyof typeof failuresEn, ErrorTexts[string]> = {
  too_long_for_model: ({ model }) => `Dieser Chat ist zu lang für ${model}. Komprimiere ihn oder beginne einen neuen.`,
  rate_limited: ({ provider_title, seconds }) =>
    seconds === undefined
      ? `Das Anfragelimit bei ${provider_title} ist erreicht. Versuche es später erneut.`
      : `Das Anfragelimit bei ${provider_title} ist erreicht. Versuche es in ${seconds === "1" ? "1 Sekunde" : `${seconds} Sekunden`} erneut.`,
  no_credit: ({ provider_title }) => `Dein Konto bei ${provider_title} hat kein Guthaben mehr.`,
  key_missing: ({ provider_title }) => `Für ${provider_title} fehlt ein API-Schlüssel. Trage ihn in den Servereinstellungen unter „Modelle“ ein.`,
  key_rejected: ({ provider_title, model }) =>
    `${provider_title} hat den API-Schlüssel abgelehnt${model === undefined ? "" : `, oder er gilt nicht für ${model}`}. Prüfe ihn in den Servereinstellungen unter „Modelle“.`,
  unknown_model: ({ provider_title, model }) => `${provider_title} hat kein Modell ${model}. Wähle ein anderes.`,
  request_rejected_by_provider: ({ provider_title }) => `${provider_title} hat die Anfrage abgelehnt.`,
  content_filtered: ({ provider_title }) => `Der Inhaltsfilter von ${provider_title} hat die Antwort blockiert.`,
  empty_answer: ({ model }) => `${model} hat eine leere Antwort gegeben. Versuche es erneut oder formuliere deine Nachricht um.`,
  provider_timed_out: ({ provider_title }) => `${provider_title} hat nicht rechtzeitig geantwortet.`,
  cannot_connect: ({ provider_title, provider }) =>
    provider === "ollama" ? "Keine Verbindung zu Ollama. Läuft es?" : `Keine Verbindung zu ${provider_title}.`,
  connection_dropped: ({ provider_title }) => `Die Verbindung zu ${provider_title} ist abgebrochen.`,
  provider_unavailable: ({ provider_title, status }) => `${provider_title} ist gerade nicht verfügbar (HTTP ${status}).`,
  invalid_response: ({ provider_title }) => `${provider_title} hat eine unvollständige oder ungültige Antwort gesendet.`,
  dropped_mid_answer: ({ provider_title }) =>
    `Die Verbindung zu ${provider_title} ist mitten in der Antwort abgebrochen. Der bisherige Text ist gespeichert.`,
  stalled_mid_answer: ({ provider_title }) =>
    `${provider_title} hat mitten in der Antwort aufgehört zu senden. Der bisherige Text ist gespeichert.`,
  budget_exceeded: (facts) => `${explainLimit(facts)} Es beginnt neu am ${facts.resets_at}.`,
  price_unknown: ({ model }) => `Für dein Budget gilt ein Limit in Dollar, aber der Preis von ${model} ist unbekannt. Trage ihn in den Servereinstellungen ein.`,
  no_models: ({ provider_title }) => `${provider_title} bietet kein Modell an, das antworten kann.`,
  address_invalid: ({ provider }) => `Die Adresse des Anbieters ${provider} ist ungültig. Trage eine URL ein, die mit http:// oder https:// beginnt.`,
  address_missing: ({ provider }) => `Trage zuerst die Adresse des Anbieters ${provider} ein.`,
  packages_missing: ({ command }) => `Für Modelle von Anbietern fehlen Pakete. Installiere sie mit ${command}.`,
  internal_turn_error: ({ error }) => `Interner Fehler in Palaver (${error}). Details stehen im Serverprotokoll.`,
};

export const noticesDe: Record<keyof typeof noticesEn, ErrorTexts[string]> = {
  summarizing: () => "Ältere Nachrichten werden zusammengefasst …",
  nearly_full: () => "Der Kontext des Modells war fast voll. Der Agent sieht jetzt eine Zusammenfassung dieses Chats.",
  summarized: () => "Dieser Chat war zu lang für das Modell. Der Agent sieht jetzt eine Zusammenfassung.",
  omitted: () => "Dieser Chat war zu lang für das Modell. Der Agent sieht die ältesten Nachrichten nicht mehr.",
  shortened: () => "Eine Nachricht war zu lang für das Modell. Der Agent sieht sie gekürzt.",
  oldest_not_seen: ({ count }) =>
    count === "1"
      ? "Der Chat ist zu lang für das lokale Modell. Der Agent hat die älteste Nachricht nicht gesehen."
      : `Der Chat ist zu lang für das lokale Modell. Der Agent hat die ältesten ${count} Nachrichten nicht gesehen.`,
  tool_limit: ({ count }) => `Der Agent hat ${count}-mal hintereinander Tools verwendet und muss jetzt antworten.`,
  cut_off: () => "Die Antwort wurde abgeschnitten, weil sie die maximale Länge erreicht hat.",
  fallback_used: ({ reason, model, instead_of }) => `${reason} Es antwortet ${model} statt ${instead_of}.`,
  mcp_unavailable: ({ server, problem }) =>
    `Die Tools des MCP-Servers „${server}“ sind nicht verfügbar (${problem}). Palaver versucht weiter, ihn zu erreichen.`,
  profile_missing: ({ name }) => `Das Profil „${name}“ gibt es nicht mehr. Es gilt der Standard.`,
  personality_missing: ({ name }) => `Die Persönlichkeit „${name}“ gibt es nicht mehr. Es gilt keine.`,
  budget_nearly_used: (facts) => {
    const amounts = facts.used === undefined ? "" : ` (${facts.used} von ${facts.limit})`;
    const name = capitalize(nameBudgetDe(facts.scope, facts.period, facts.subject));
    return `${name} ist zu ${facts.percent} % verbraucht${amounts}. Es beginnt neu am ${facts.resets_at}.`;
  },
  answer_limited: () => "Vom Budget ist nur noch wenig übrig, deshalb müssen Antworten kürzer sein.",
  model_not_allowed: ({ model }) => `Das Modell ${model} steht dir nicht zur Verfügung. Es gilt das Standardmodell.`,
};

function explainLimit({ scope, period, subject, used, limit, remaining }: ErrorFacts): string {
  const name = capitalize(nameBudgetDe(scope, period, subject));
  if (remaining !== undefined) return `${name} hat nur noch ${remaining} übrig, zu wenig für diese Antwort.`;
  return used === undefined ? `${name} ist aufgebraucht.` : `${name} ist aufgebraucht: ${used} von ${limit}.`;
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
