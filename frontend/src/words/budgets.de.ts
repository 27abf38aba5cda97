/** The texts about budgets, in German. */
import type { budgetsEn } from "./budgets.en";

/** `dein Tagesbudget`, `das Monatsbudget des Profils „research“`. */
export function nameBudgetDe(scope = "", period = "", subject = ""): string {
  const noun = period === "month" ? "Monatsbudget" : "Tagesbudget";
  if (scope === "person") return `dein ${noun}`;
  if (scope === "job") return `das ${noun} der Aufgabe „${subject}“`;
  if (scope === "profile") return `das ${noun} des Profils „${subject}“`;
  return `das gemeinsame ${noun}`;
}

export const budgetsDe: typeof budgetsEn = {
  budget: "Budget",
  budgetIntro: "Was Anfragen an die Modelle gekostet haben und kosten dürfen.",
  budgetZone: (zone) => `Tage und Monate beginnen um Mitternacht, ${zone}.`,
  budgetName: nameBudgetDe,
  budgetAll: "Alle zusammen",
  budgetEachPerson: "Jede Person",
  budgetEachJob: "Jede Aufgabe",
  budgetEachProfile: "Jedes Profil",
  budgetPeople: "Personen",
  budgetJobs: "Aufgaben",
  budgetProfiles: "Profile",
  budgetYours: "Du",
  budgetToday: "Heute",
  budgetThisMonth: "Dieser Monat",
  budgetOf: (used, limit) => `${used} von ${limit}`,
  budgetTokens: (count) => `${count} Token`,
  budgetHeld: (amount) => `${amount} für laufende Antworten reserviert`,
  budgetUnpriced: (count) => (count === 1 ? "dazu 1 Anfrage mit unbekanntem Preis" : `dazu ${count} Anfragen mit unbekanntem Preis`),
  budgetNothingUsed: "Nichts verbraucht",
  budgetNoLimit: "Kein Limit",
  budgetResets: (at) => `Neu ab ${at}`,
  budgetShare: (percent, name) => `${name}: ${percent} verbraucht`,
  budgetUsedUp: (name, at) => `${name} ist bis ${at} aufgebraucht. Ein Besitzer kann es erhöhen.`,
  budgetOpen: "Budget öffnen",
  budgetRaise: "Limit erhöhen",
  budgetAdd: "Limit hinzufügen",
  budgetFor: "Für",
  budgetPeriod: "Zeitraum",
  budgetPerDay: "Pro Tag",
  budgetPerMonth: "Pro Monat",
  budgetDollars: "Dollar",
  budgetTokenLimit: "Token",
  budgetNoLimitHint: "Kein Limit",
  budgetDollarsInvalid: "Gib Dollar ein, zum Beispiel 5 oder 0,25 (höchstens 6 Nachkommastellen).",
  budgetTokensInvalid: "Gib eine Zahl von Token ein, zum Beispiel 200k oder 1,5M.",
  budgetEdit: (name, period) => `Limit bearbeiten: ${name}, ${period}`,
  budgetUseConfig: "Servereinstellungen verwenden",
  budgetSetHere: "hier gesetzt",
  budgetSaved: "Limit gespeichert",
  budgetCleared: "Limit entfernt. Es gelten die Servereinstellungen.",
};
