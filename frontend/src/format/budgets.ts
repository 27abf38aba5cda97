/** Budgets in the reader's language. Pure. */
import { getLocale, words } from "../words";
import { formatCount, formatDollars } from "./numbers";

const NANOS_PER_DOLLAR = 1e9;
export const WARNING_PERCENT = 80;

/** The fields of a budget that texts are made of. */
export interface BudgetAmounts {
  used_usd: string;
  held_usd: string;
  limit_usd: string | null;
  used_tokens: number;
  held_tokens: number;
  limit_tokens: number | null;
  unpriced_calls: number;
}

export type BudgetLevel = "ok" | "warning" | "used-up";

export function getBudgetLevel(percent: number): BudgetLevel {
  return percent >= 100 ? "used-up" : percent >= WARNING_PERCENT ? "warning" : "ok";
}

/** How much of the tighter limit is used, in percent; null without a limit. What running answers hold is left out: it is the most that they can cost. */
export function getUsedPercent({ used_usd, limit_usd, used_tokens, limit_tokens }: BudgetAmounts): number | null {
  const share = (used: number, limit: number) => (limit > 0 ? Math.floor((100 * used) / limit) : 100);
  const shares = [
    ...(limit_usd === null ? [] : [share(Number(used_usd), Number(limit_usd))]),
    ...(limit_tokens === null ? [] : [share(used_tokens, limit_tokens)]),
  ];
  return shares.length === 0 ? null : Math.max(...shares);
}

/** What is used, unit by unit: `$1.20 of $5.00`, `12K tokens`. A unit that is neither used nor limited is left out. */
export function describeAmounts(budget: BudgetAmounts): string[] {
  const { limit_usd, limit_tokens } = budget;
  const lines: string[] = [];
  if (limit_usd !== null || Number(budget.used_usd) > 0) {
    const used = formatDollars(budget.used_usd);
    lines.push(limit_usd === null ? used : words.budgetOf(used, formatDollars(limit_usd)));
  }
  if (limit_tokens !== null || budget.used_tokens > 0) {
    const used = formatCount(budget.used_tokens);
    lines.push(words.budgetTokens(limit_tokens === null ? used : words.budgetOf(used, formatCount(limit_tokens))));
  }
  if (Number(budget.held_usd) > 0) lines.push(words.budgetHeld(formatDollars(budget.held_usd)));
  else if (budget.held_tokens > 0) lines.push(words.budgetHeld(words.budgetTokens(formatCount(budget.held_tokens))));
  if (budget.unpriced_calls > 0) lines.push(words.budgetUnpriced(budget.unpriced_calls));
  return lines.length > 0 ? lines : [words.budgetNothingUsed];
}

/** When a window ends, by the clock of the server's time zone. */
export function formatResetTime(at: string, timezone: string): string {
  const format = new Intl.DateTimeFormat(getLocale(), {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: timezone,
  });
  return `${format.format(new Date(at))} (${timezone})`;
}

/** The facts of a budget in an error or a notice, as texts: the server sends nano-dollars or tokens. */
export function formatBudgetFacts(facts: Readonly<Record<string, unknown>>): Record<string, string> {
  const { unit, used, limit, resets_at: at, timezone } = facts;
  if (unit !== "usd" && unit !== "tokens") return {};
  const format = (amount: number) =>
    unit === "usd" ? formatDollars(String(amount / NANOS_PER_DOLLAR)) : words.budgetTokens(new Intl.NumberFormat(getLocale()).format(amount));
  const texts: Record<string, string> = {};
  if (typeof used === "number" && typeof limit === "number") {
    texts.used = format(used);
    texts.limit = format(limit);
    if (used < limit) texts.remaining = format(limit - used);
  }
  if (typeof at === "string" && typeof timezone === "string") texts.resets_at = formatResetTime(at, timezone);
  return texts;
}
