/** The requests about budgets. */
import { request } from "./http";
import type { Schemas } from "./types";

export type Budget = Schemas["BudgetJson"];
export type Budgets = Schemas["BudgetsJson"];
export type BudgetScope = Schemas["BudgetScope"];
export type BudgetPeriod = Schemas["BudgetPeriod"];

/** Limits to set: null means no limit; a unit that is missing stays as it is. */
export type Limits = Schemas["LimitsIn"];

/** What a budget is about. Without a subject it is about all together, or about each person, job or profile. */
type BudgetKey = Pick<Budget, "scope" | "subject" | "period">;

export const BUDGETS_KEY = "budgets"; // the first part of the keys of all queries about them

const LIMIT_PATH = "/api/budgets/{scope}/{subject}/{period}";
const keyInPath = ({ scope, subject, period }: BudgetKey) => ({ scope, subject: subject || "*", period });

export const listOwnBudgets = (session: string | null) => request("GET", "/api/budgets", { query: { session } });
export const listAllBudgets = (cursor: string | null) => request("GET", "/api/budgets", { query: { all: true, cursor } });
export const setLimits = (key: BudgetKey, limits: Limits) => request("PUT", LIMIT_PATH, { path: keyInPath(key), body: limits });
export const clearLimits = (key: BudgetKey) => request("DELETE", LIMIT_PATH, { path: keyInPath(key) });
