/** The texts about budgets, in English. */

const PERIODS = { day: "daily", month: "monthly" } as const;

/** `your daily budget`, `the monthly budget of the profile “research”`. */
export function nameBudgetEn(scope = "", period = "", subject = ""): string {
  const adjective = period === "month" ? PERIODS.month : PERIODS.day;
  if (scope === "person") return `your ${adjective} budget`;
  if (scope === "job") return `the ${adjective} budget of the job “${subject}”`;
  if (scope === "profile") return `the ${adjective} budget of the profile “${subject}”`;
  return `the ${adjective} budget of everybody together`;
}

export const budgetsEn = {
  budget: "Budget",
  budgetIntro: "What calls to the models have cost, and what they may cost.",
  budgetZone: (zone: string) => `Days and months begin at midnight, ${zone}.`,
  budgetName: nameBudgetEn,
  budgetAll: "Everybody together",
  budgetEachPerson: "Each person",
  budgetEachJob: "Each job",
  budgetEachProfile: "Each profile",
  budgetPeople: "People",
  budgetJobs: "Jobs",
  budgetProfiles: "Profiles",
  budgetYours: "You",
  budgetToday: "Today",
  budgetThisMonth: "This month",
  budgetOf: (used: string, limit: string) => `${used} of ${limit}`,
  budgetTokens: (count: string) => (count === "1" ? "1 token" : `${count} tokens`),
  budgetHeld: (amount: string) => `${amount} held for running answers`,
  budgetUnpriced: (count: number) => (count === 1 ? "plus 1 call with an unknown price" : `plus ${count} calls with an unknown price`),
  budgetNothingUsed: "Nothing used",
  budgetNoLimit: "No limit",
  budgetResets: (at: string) => `Resets ${at}`,
  budgetShare: (percent: string, name: string) => `${percent} of ${name} used`,
  budgetUsedUp: (name: string, at: string) => `${name} is used up until ${at}. An owner can raise it.`,
  budgetOpen: "Open budget",
  budgetRaise: "Raise limit",
  budgetAdd: "Add limit",
  budgetFor: "For",
  budgetPeriod: "Period",
  budgetPerDay: "Per day",
  budgetPerMonth: "Per month",
  budgetDollars: "Dollars",
  budgetTokenLimit: "Tokens",
  budgetNoLimitHint: "No limit",
  budgetDollarsInvalid: "Enter dollars such as 5 or 0.25, with at most 6 decimals.",
  budgetTokensInvalid: "Enter tokens such as 200k or 1.5M.",
  budgetEdit: (name: string, period: string) => `Edit limit: ${name}, ${period}`,
  budgetUseConfig: "Use the server settings",
  budgetSetHere: "set here",
  budgetSaved: "Limit saved",
  budgetCleared: "Limit removed. The server settings apply.",
};
