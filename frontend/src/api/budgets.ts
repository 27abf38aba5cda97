/** The requests about budgets. */
import { request } from "./http";
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Budget = Schemas["BudgetJson"];
export type Budgets = Schemas["BudgetsJson"];
export type BudgetScope = Schemas["BudgetScope"];
export type BudgetPeriod = Schemas["BudgetPeriod"];
export type UsedUpBudget = Schemas["UsedUpBudgetJson"];

/** Limits to set: null means no limit; a unit that is missing stays as it is. */
export interface Limits {
  usd?: string | null;
  tokens?: number | null;
}

/** What a budget is about. Without a subject it is about all together, or about each person, job or profile. */
export type BudgetKey = Pick<Budget, "scope" | "subject" | "period">;

export const BUDGETS_KEY = "budgets"; // the first part of the keys of all queries about them

const limitPath = ({ scope, subject, period }: BudgetKey) => `/budgets/${scope}/${encodeURIComponent(subject || "*")}/${period}`;

export const listOwnBudgets = (session: string | null) => request<Budgets>("GET", "/budgets", { query: { session } });
export const listAllBudgets = (cursor: string | null) => request<Budgets>("GET", "/budgets", { query: { all: true, cursor } });
export const setLimits = (key: BudgetKey, limits: Limits) => request<Budget>("PUT", limitPath(key), { body: limits });
export const clearLimits = (key: BudgetKey) => request<undefined>("DELETE", limitPath(key));
